/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Forged PCI Express devices for QEMU 7.2, loaded by LD_PRELOAD (see boot.sh).
 *
 *   p2p-dev                an endpoint with chosen IDs, BARs, Resizable BAR, ATS
 *   p2p-root-port          pcie-root-port        (ACS in QEMU's own: disable-acs=on)
 *   p2p-switch-upstream    x3130-upstream
 *   p2p-switch-downstream  xio3130-downstream    + an ACS capability (acs=off: none)
 *
 * All four take vendor-id, device-id and the properties of PCIE_PROPS below:
 * link speed and width, payload size, AtomicOps.  A downstream or root port
 * shows in LnkSta what the device below it shows, limited by its own LnkCap
 * (QEMU does that), so only its max-gen and max-width matter.
 *
 * Nothing here moves data: BARs read as zero and ignore writes.  Only what
 * configuration space shows is modelled.
 */
#include "qemu/osdep.h"
#include "qemu/units.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_port.h"
#include "hw/pci/msi.h"
#include "hw/qdev-properties.h"
#include "standard-headers/linux/pci_regs.h"

/* ---- what every PCI Express function here has ---- */

typedef struct PcieProps {
    uint8_t max_gen, max_width; /* LnkCap; generation 1 = 2.5 GT/s ... 6 = 64 */
    uint8_t gen, width;         /* LnkSta; 0 = the maximum */
    uint16_t max_payload;       /* DevCap, bytes */
    uint16_t payload;           /* DevCtl at power-on, bytes */
    bool atomics;               /* AtomicOp completer, or routing in a port */
} PcieProps;

#define PCIE_PROPS(State)                                                 \
    DEFINE_PROP_UINT8("max-gen", State, pcie.max_gen, 4),                 \
    DEFINE_PROP_UINT8("max-width", State, pcie.max_width, 16),            \
    DEFINE_PROP_UINT8("gen", State, pcie.gen, 0),                         \
    DEFINE_PROP_UINT8("width", State, pcie.width, 0),                     \
    DEFINE_PROP_UINT16("max-payload", State, pcie.max_payload, 256),      \
    DEFINE_PROP_UINT16("payload", State, pcie.payload, 128),              \
    DEFINE_PROP_BOOL("atomics", State, pcie.atomics, false)

static bool valid_payload(unsigned bytes)
{
    return is_power_of_2(bytes) && bytes >= 128 && bytes <= 4096;
}

static bool pcie_props_apply(PCIDevice *d, const PcieProps *p, Error **errp)
{
    uint8_t *cap = d->config + d->exp.exp_cap;
    uint8_t *writable = d->wmask + d->exp.exp_cap;
    unsigned gen = p->gen ? p->gen : p->max_gen;
    unsigned width = p->width ? p->width : p->max_width;

    if (p->max_gen < 1 || p->max_gen > 6 || gen > p->max_gen ||
        p->max_width < 1 || p->max_width > 32 || width > p->max_width) {
        error_setg(errp, "link: need 1 <= gen <= max-gen <= 6, "
                         "1 <= width <= max-width <= 32");
        return false;
    }
    if (!valid_payload(p->max_payload) || !valid_payload(p->payload) ||
        p->payload > p->max_payload) {
        error_setg(errp, "payload: need 128 <= payload <= max-payload <= 4096,"
                         " powers of two");
        return false;
    }

    pci_long_test_and_clear_mask(cap + PCI_EXP_LNKCAP,
                                 PCI_EXP_LNKCAP_SLS | PCI_EXP_LNKCAP_MLW);
    pci_long_test_and_set_mask(cap + PCI_EXP_LNKCAP,
                               p->max_gen | p->max_width << 4);
    pci_set_long(cap + PCI_EXP_LNKCAP2, (2u << p->max_gen) - 2);
    pci_set_word(cap + PCI_EXP_LNKCTL2, p->max_gen);
    pci_word_test_and_clear_mask(cap + PCI_EXP_LNKSTA,
                                 PCI_EXP_LNKSTA_CLS | PCI_EXP_LNKSTA_NLW);
    pci_word_test_and_set_mask(cap + PCI_EXP_LNKSTA, gen | width << 4);

    pci_long_test_and_set_mask(cap + PCI_EXP_DEVCAP, ctz32(p->max_payload) - 7);
    pci_word_test_and_set_mask(cap + PCI_EXP_DEVCTL,
                               (ctz32(p->payload) - 7) << 5 | 2 << 12);
    pci_word_test_and_set_mask(writable + PCI_EXP_DEVCTL,
                               PCI_EXP_DEVCTL_PAYLOAD | PCI_EXP_DEVCTL_READRQ);

    if (pci_is_express_downstream_port(d)) {
        if (p->max_gen > 1) {   /* link-active reporting, as real ports have */
            pci_long_test_and_set_mask(cap + PCI_EXP_LNKCAP,
                                       PCI_EXP_LNKCAP_DLLLARC);
        }
        if (p->atomics) {
            pci_long_test_and_set_mask(cap + PCI_EXP_DEVCAP2,
                                       PCI_EXP_DEVCAP2_ATOMIC_ROUTE);
            pci_word_test_and_set_mask(writable + PCI_EXP_DEVCTL2,
                                       PCI_EXP_DEVCTL2_ATOMIC_EGRESS_BLOCK);
        }
    } else if (p->atomics && pcie_cap_get_type(d) == PCI_EXP_TYPE_UPSTREAM) {
        pci_long_test_and_set_mask(cap + PCI_EXP_DEVCAP2,
                                   PCI_EXP_DEVCAP2_ATOMIC_ROUTE);
    } else if (p->atomics) {
        pci_long_test_and_set_mask(cap + PCI_EXP_DEVCAP2,
                                   PCI_EXP_DEVCAP2_ATOMIC_COMP32 |
                                   PCI_EXP_DEVCAP2_ATOMIC_COMP64);
        pci_word_test_and_set_mask(writable + PCI_EXP_DEVCTL2,
                                   PCI_EXP_DEVCTL2_ATOMIC_REQ);
    }
    return true;
}

/*
 * The headers must lay out QEMU's structures as the running binary does; a
 * wrong one (another version, a missing CONFIG_ macro) would corrupt memory.
 */
static void check_layout(void)
{
    if (object_type_get_instance_size(TYPE_PCI_DEVICE) != sizeof(PCIDevice) ||
        object_type_get_instance_size(TYPE_PCIE_SLOT) != sizeof(PCIESlot)) {
        fprintf(stderr, "p2pdev: built with headers of another QEMU\n");
        exit(1);
    }
}

/* ---- endpoint ---- */

#define TYPE_P2P_DEV "p2p-dev"
OBJECT_DECLARE_SIMPLE_TYPE(P2pDev, P2P_DEV)

struct P2pDev {
    PCIDevice parent_obj;
    PcieProps pcie;
    uint16_t vendor, device, sub_vendor, sub_device;
    uint32_t class_code;
    uint8_t revision;
    uint64_t bar0_size, bar1_size, bar1_max, bar3_size;
    bool bars64, rebar, ats;
    uint64_t serial;
    MemoryRegion bar0, bar1, bar3;
};

#define MSI_AT   0x68
#define EXP_AT   0x78
#define DSN_AT   0x100
#define ATS_AT   0x110
#define REBAR_AT 0x200
#define REBAR_MIN (64 * MiB)

static uint64_t bar_read(void *opaque, hwaddr addr, unsigned size)
{
    return 0;
}

static void bar_write(void *opaque, hwaddr addr, uint64_t value, unsigned size)
{
}

static const MemoryRegionOps bar_ops = {
    .read = bar_read,
    .write = bar_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid.max_access_size = 8,
    .impl.max_access_size = 8,
};

/* The large BAR: "BAR1" up to Ada, register 2 in the all-64-bit layout. */
static int large_bar(const P2pDev *s)
{
    return s->bars64 ? 2 : 1;
}

static void add_bar(P2pDev *s, int reg, MemoryRegion *mr, uint64_t size,
                    bool is64)
{
    uint8_t type = PCI_BASE_ADDRESS_SPACE_MEMORY;

    if (is64) {
        type |= PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH;
    }
    if (size) {
        memory_region_init_io(mr, OBJECT(s), &bar_ops, s, "p2p-bar", size);
        pci_register_bar(PCI_DEVICE(s), reg, type, mr);
    }
}

static void rebar_init(P2pDev *s)
{
    PCIDevice *d = PCI_DEVICE(s);
    uint32_t sizes = 0;

    for (uint64_t z = REBAR_MIN; z <= s->bar1_max; z <<= 1) {
        sizes |= 1u << (ctz64(z / MiB) + 4);
    }
    pcie_add_capability(d, PCI_EXT_CAP_ID_REBAR, 1, REBAR_AT, 12);
    pci_set_long(d->config + REBAR_AT + PCI_REBAR_CAP, sizes);
    pci_set_long(d->config + REBAR_AT + PCI_REBAR_CTRL,
                 large_bar(s) | 1 << 5 | ctz64(s->bar1_size / MiB) << 8);
    pci_set_long(d->wmask + REBAR_AT + PCI_REBAR_CTRL,
                 PCI_REBAR_CTRL_BAR_SIZE);
}

/* The guest wrote the Resizable BAR control register. */
static void rebar_changed(P2pDev *s)
{
    PCIDevice *d = PCI_DEVICE(s);
    int reg = large_bar(s);
    PCIIORegion *r = &d->io_regions[reg];
    uint8_t *ctrl = d->config + REBAR_AT + PCI_REBAR_CTRL;
    uint32_t value = pci_get_long(ctrl);
    uint32_t exponent = (value & PCI_REBAR_CTRL_BAR_SIZE) >> 8;
    uint64_t size = MiB << exponent;

    if (size == r->size) {
        return;
    }
    if (size < REBAR_MIN || size > s->bar1_max) {   /* not offered: ignored */
        value &= ~PCI_REBAR_CTRL_BAR_SIZE;
        pci_set_long(ctrl, value | ctz64(r->size / MiB) << 8);
        return;
    }
    r->size = size;
    memory_region_set_size(r->memory, size);
    pci_set_quad(d->wmask + pci_bar(d, reg), ~(size - 1));
    pci_set_quad(d->config + pci_bar(d, reg), r->type);
}

static void p2p_dev_write_config(PCIDevice *d, uint32_t addr, uint32_t value,
                                 int len)
{
    P2pDev *s = P2P_DEV(d);

    pci_default_write_config(d, addr, value, len);
    if (s->rebar && ranges_overlap(addr, len, REBAR_AT + PCI_REBAR_CTRL, 4)) {
        rebar_changed(s);
    }
}

static void p2p_dev_realize(PCIDevice *d, Error **errp)
{
    P2pDev *s = P2P_DEV(d);

    pci_config_set_vendor_id(d->config, s->vendor);
    pci_config_set_device_id(d->config, s->device);
    pci_config_set_revision(d->config, s->revision);
    pci_config_set_class(d->config, s->class_code >> 8);
    pci_config_set_prog_interface(d->config, s->class_code);
    pci_set_word(d->config + PCI_SUBSYSTEM_VENDOR_ID, s->sub_vendor);
    pci_set_word(d->config + PCI_SUBSYSTEM_ID, s->sub_device);

    if (s->rebar && (!is_power_of_2(s->bar1_size) ||
                     s->bar1_size < REBAR_MIN || s->bar1_size > s->bar1_max)) {
        error_setg(errp, "rebar: need 64M <= bar1 <= bar1-max");
        return;
    }
    add_bar(s, 0, &s->bar0, s->bar0_size, s->bars64);
    add_bar(s, large_bar(s), &s->bar1, s->bar1_size, true);
    add_bar(s, large_bar(s) + 2, &s->bar3, s->bar3_size, true);

    pcie_endpoint_cap_init(d, EXP_AT);
    if (!pcie_props_apply(d, &s->pcie, errp)) {
        return;
    }
    msi_init(d, MSI_AT, 1, true, false, NULL);
    pcie_dev_ser_num_init(d, DSN_AT, s->serial);
    if (s->ats) {
        pcie_ats_init(d, ATS_AT, true);
    }
    if (s->rebar) {
        rebar_init(s);
    }
}

static Property p2p_dev_props[] = {
    DEFINE_PROP_UINT16("vendor-id", P2pDev, vendor, 0x10de),
    DEFINE_PROP_UINT16("device-id", P2pDev, device, 0x2330),
    DEFINE_PROP_UINT16("sub-vendor-id", P2pDev, sub_vendor, 0x10de),
    DEFINE_PROP_UINT16("sub-device-id", P2pDev, sub_device, 0x16c1),
    DEFINE_PROP_UINT32("class", P2pDev, class_code, 0x030200),
    DEFINE_PROP_UINT8("rev", P2pDev, revision, 0xa1),
    DEFINE_PROP_SIZE("bar0", P2pDev, bar0_size, 16 * MiB),
    DEFINE_PROP_SIZE("bar1", P2pDev, bar1_size, 256 * MiB),
    DEFINE_PROP_SIZE("bar1-max", P2pDev, bar1_max, 32 * GiB),
    DEFINE_PROP_SIZE("bar3", P2pDev, bar3_size, 32 * MiB),
    /* BAR0, BAR1, BAR3 as 64-bit registers 0, 2, 4 (as Hopper has them) */
    DEFINE_PROP_BOOL("bars64", P2pDev, bars64, false),
    DEFINE_PROP_BOOL("rebar", P2pDev, rebar, false),
    DEFINE_PROP_BOOL("ats", P2pDev, ats, false),
    DEFINE_PROP_UINT64("serial", P2pDev, serial, 0x0123456789abcdefULL),
    PCIE_PROPS(P2pDev),
    DEFINE_PROP_END_OF_LIST(),
};

static void p2p_dev_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);
    PCIDeviceClass *pc = PCI_DEVICE_CLASS(klass);

    check_layout();
    pc->realize = p2p_dev_realize;
    pc->config_write = p2p_dev_write_config;
    pc->class_id = PCI_CLASS_OTHERS;
    dc->desc = "forged PCI Express endpoint";
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
    device_class_set_props(dc, p2p_dev_props);
}

/* ---- ports: QEMU's own, with more properties ---- */

typedef struct P2pPort {
    union {
        PCIESlot slot;
        char parent[16 * KiB];  /* the parent's state, private to QEMU */
    };
    PcieProps pcie;
    uint16_t vendor, device;
    bool acs;
} P2pPort;

#define ACS_AT 0x148            /* behind xio3130-downstream's AER capability */

static void p2p_port_realize(PCIDevice *d, Error **errp)
{
    ERRP_GUARD();
    P2pPort *s = (P2pPort *)d;
    ObjectClass *parent = object_class_get_parent(object_get_class(OBJECT(d)));

    if (object_type_get_instance_size(object_class_get_name(parent)) >
        offsetof(P2pPort, pcie)) {
        error_setg(errp, "P2pPort.parent is too small");
        return;
    }
    PCI_DEVICE_CLASS(parent)->realize(d, errp);
    if (*errp || !pcie_props_apply(d, &s->pcie, errp)) {
        return;
    }
    if (s->vendor) {
        pci_config_set_vendor_id(d->config, s->vendor);
        pci_config_set_device_id(d->config, s->device);
    }
    if (s->acs && pcie_cap_get_type(d) == PCI_EXP_TYPE_DOWNSTREAM) {
        pcie_acs_init(d, ACS_AT);
    }
}

static Property p2p_port_props[] = {
    /* 0: QEMU's own, which SeaBIOS needs to honour pref64-reserve */
    DEFINE_PROP_UINT16("vendor-id", P2pPort, vendor, 0),
    DEFINE_PROP_UINT16("device-id", P2pPort, device, 0),
    PCIE_PROPS(P2pPort),
    DEFINE_PROP_END_OF_LIST(),
};

static Property p2p_switch_props[] = {
    DEFINE_PROP_UINT16("vendor-id", P2pPort, vendor, 0x1000),
    DEFINE_PROP_UINT16("device-id", P2pPort, device, 0xc030),
    DEFINE_PROP_BOOL("acs", P2pPort, acs, true),
    PCIE_PROPS(P2pPort),
    DEFINE_PROP_END_OF_LIST(),
};

static void p2p_port_class_init(ObjectClass *klass, void *props)
{
    PCI_DEVICE_CLASS(klass)->realize = p2p_port_realize;
    device_class_set_props(DEVICE_CLASS(klass), props);
}

/* ---- registration ---- */

static InterfaceInfo pcie_interface[] = { { INTERFACE_PCIE_DEVICE }, { } };

static const TypeInfo types[] = {
    {
        .name = TYPE_P2P_DEV,
        .parent = TYPE_PCI_DEVICE,
        .instance_size = sizeof(P2pDev),
        .class_init = p2p_dev_class_init,
        .interfaces = pcie_interface,
    }, {
        .name = "p2p-root-port",
        .parent = "pcie-root-port",
        .instance_size = sizeof(P2pPort),
        .class_init = p2p_port_class_init,
        .class_data = p2p_port_props,
    }, {
        .name = "p2p-switch-upstream",
        .parent = "x3130-upstream",
        .instance_size = sizeof(P2pPort),
        .class_init = p2p_port_class_init,
        .class_data = p2p_switch_props,
    }, {
        .name = "p2p-switch-downstream",
        .parent = "xio3130-downstream",
        .instance_size = sizeof(P2pPort),
        .class_init = p2p_port_class_init,
        .class_data = p2p_switch_props,
    },
};

static void p2p_register_types(void)
{
    type_register_static_array(types, ARRAY_SIZE(types));
}

static void __attribute__((constructor)) p2p_load(void)
{
    register_module_init(p2p_register_types, MODULE_INIT_QOM);
}
