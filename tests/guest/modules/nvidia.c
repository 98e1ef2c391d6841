// SPDX-License-Identifier: GPL-2.0
/* Stand-in for NVIDIA's driver: binds to GPUs, exports one symbol and says its version. */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

int nvidia_p2p_get_pages(void);

int nvidia_p2p_get_pages(void)
{
	return -EINVAL;
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

#define GPU(class_)                                                                                \
	{                                                                                          \
		PCI_DEVICE(0x10de, PCI_ANY_ID), .class = (class_) << 8, .class_mask = ~0           \
	}
static const struct pci_device_id ids[] = {GPU(PCI_CLASS_DISPLAY_VGA),
					   GPU(PCI_CLASS_DISPLAY_3D),
					   {}};

static int probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	return pci_enable_device_mem(dev);
}

static void remove(struct pci_dev *dev)
{
	pci_disable_device(dev);
}

static struct pci_driver standin = {
	.name = "nvidia",
	.id_table = ids,
	.probe = probe,
	.remove = remove,
};

#define VERSION "580.95.05"

static bool closed;
module_param(closed, bool, 0);
MODULE_PARM_DESC(closed, "calls itself the proprietary modules");

static int version_show(struct seq_file *f, void *data)
{
	seq_printf(f, "NVRM version: NVIDIA UNIX %s  " VERSION "  (test stand-in)\n",
		   closed ? "x86_64 Kernel Module" : "Open Kernel Module for x86_64");
	return 0;
}

static struct proc_dir_entry *folder;

static int __init standin_init(void)
{
	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder || !proc_create_single("version", 0444, folder, version_show)) {
		proc_remove(folder);
		return -ENOMEM;
	}
	return pci_register_driver(&standin);
}

static void __exit standin_exit(void)
{
	pci_unregister_driver(&standin);
	proc_remove(folder);
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_DEVICE_TABLE(pci, ids);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(VERSION);
MODULE_DESCRIPTION("test stand-in for NVIDIA's driver");
