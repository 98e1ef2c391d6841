/* SPDX-License-Identifier: GPL-2.0 */
/* The part of OFED's peer-memory interface that the stand-ins use. */
#ifndef PEER_API_H
#define PEER_API_H

struct peer_client {
	const char *name, *version;
#ifdef OTHER_OFED
	int added_later;
#endif
};

void *ib_register_peer_memory_client(const struct peer_client *client, void **invalidate);
void ib_unregister_peer_memory_client(void *handle);

#endif
