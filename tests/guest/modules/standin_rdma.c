// SPDX-License-Identifier: GPL-2.0
/* Stand-in for mlx5_ib: an InfiniBand device with one port for each forged ConnectX. */
#include <linux/module.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>

static bool no_link;
module_param(no_link, bool, 0444);
MODULE_PARM_DESC(no_link, "ports are down");

static int query_device(struct ib_device *dev, struct ib_device_attr *attr, struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->max_pkeys = 1;
	return 0;
}

static int query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	attr->state = no_link ? IB_PORT_DOWN : IB_PORT_ACTIVE;
	attr->phys_state = no_link ? IB_PORT_PHYS_STATE_POLLING : IB_PORT_PHYS_STATE_LINK_UP;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->active_speed = IB_SPEED_NDR;
	attr->active_width = IB_WIDTH_4X;
	attr->max_mtu = attr->active_mtu = IB_MTU_4096;
	return 0;
}

static int port_immutable(struct ib_device *dev, u32 port, struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	return 0;
}

static int query_gid(struct ib_device *dev, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = dev->node_guid;
	return 0;
}

static int query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

static const struct ib_device_ops ops = {
	.owner = THIS_MODULE,
	.query_device = query_device,
	.query_port = query_port,
	.get_port_immutable = port_immutable,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
};

static int probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct ib_device *dev = _ib_alloc_device(sizeof(*dev));
	int r;

	if (!dev)
		return -ENOMEM;
	dev->node_type = RDMA_NODE_IB_CA;
	dev->phys_port_cnt = 1;
	dev->num_comp_vectors = 1;
	dev->node_guid = cpu_to_be64(0x0002c90300000000ULL | pci_dev_id(pdev));
	dev->dev.parent = &pdev->dev;
	ib_set_device_ops(dev, &ops);
	r = ib_register_device(dev, "mlx5_%d", &pdev->dev);
	if (r) {
		ib_dealloc_device(dev);
		return r;
	}
	pci_set_drvdata(pdev, dev);
	return 0;
}

static void remove(struct pci_dev *pdev)
{
	struct ib_device *dev = pci_get_drvdata(pdev);

	ib_unregister_device(dev);
	ib_dealloc_device(dev);
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(0x15b3, PCI_ANY_ID)}, {}};
static struct pci_driver standin = {.name = "mlx5_core",
				    .id_table = ids,
				    .probe = probe,
				    .remove = remove};
module_pci_driver(standin);
MODULE_DEVICE_TABLE(pci, ids);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("test stand-in for mlx5_ib");
