// SPDX-License-Identifier: GPL-2.0
/* Stand-in for nvidia-peermem and nv_peer_mem: registers a client of the peer-memory interface. */
#include "peer_api.h"

#include <linux/module.h>

#ifndef WITHOUT_API
int nvidia_p2p_get_pages(void);

static const struct peer_client client = {.name = "nv_mem", .version = "1.3"};
static void *handle;

static int peerdirect_support;
module_param(peerdirect_support, int, 0444);
MODULE_PARM_DESC(peerdirect_support, "0 or 1");

static int __init peermem_init(void)
{
	/* in the words of the modules it stands in for, as below */
	if (peerdirect_support < 0 || peerdirect_support > 1) {
		pr_err("%s: invalid peerdirect_support param value %d\n", KBUILD_MODNAME,
		       peerdirect_support);
		return -EINVAL;
	}
	nvidia_p2p_get_pages();
	handle = ib_register_peer_memory_client(&client, NULL);
	if (handle)
		return 0;
	pr_err("%s: nv_mem_client_init -- error while registering client\n", KBUILD_MODNAME);
	return -EINVAL;
}

static void __exit peermem_exit(void)
{
	ib_unregister_peer_memory_client(handle);
}
#else
static int __init peermem_init(void)
{
	return -EINVAL;
}

static void __exit peermem_exit(void)
{
}
#endif

module_init(peermem_init);
module_exit(peermem_exit);
MODULE_LICENSE("GPL");
MODULE_VERSION("580.95.05");
MODULE_DESCRIPTION("test stand-in for NVIDIA's peer-memory client");
