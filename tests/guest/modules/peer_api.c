// SPDX-License-Identifier: GPL-2.0
/* Stand-in for the peer-memory interface of OFED's ib_core: keeps a list of clients in sysfs. */
#include "peer_api.h"

#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

struct entry {
	struct kobject kobj;
	const struct peer_client *client;
};

static struct kobject *peers;

static ssize_t version_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sprintf(buf, "%s\n", container_of(kobj, struct entry, kobj)->client->version);
}

static struct kobj_attribute version_attr = __ATTR_RO(version);
static struct attribute *entry_attrs[] = {&version_attr.attr, NULL};
ATTRIBUTE_GROUPS(entry);

static void entry_release(struct kobject *kobj)
{
	kfree(container_of(kobj, struct entry, kobj));
}

static const struct kobj_type entry_type = {
	.release = entry_release,
	.sysfs_ops = &kobj_sysfs_ops,
	.default_groups = entry_groups,
};

void *ib_register_peer_memory_client(const struct peer_client *client, void **invalidate)
{
	struct entry *e = kzalloc(sizeof(*e), GFP_KERNEL);

	if (!e)
		return NULL;
	e->client = client;
	if (kobject_init_and_add(&e->kobj, (struct kobj_type *)&entry_type, peers, "%s",
				 client->name)) {
		kobject_put(&e->kobj);
		return NULL;
	}
	return e;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
	kobject_put(&((struct entry *)handle)->kobj);
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

static int __init peer_api_init(void)
{
	peers = kobject_create_and_add("memory_peers", mm_kobj);
	return peers ? 0 : -ENOMEM;
}

static void __exit peer_api_exit(void)
{
	kobject_put(peers);
}

module_init(peer_api_init);
module_exit(peer_api_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("test stand-in for OFED's peer-memory interface");
