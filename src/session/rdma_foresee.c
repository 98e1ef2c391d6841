/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a NIC and a GPU before anything is registered. */
#include "session/rdma_session_impl.h"

#include "topology/preflight.h"

#include <stdio.h>
#include <string.h>

const struct rdma_pair *rdma_session_pair(const struct rdma_session *s, size_t port, int gpu)
{
	for (size_t i = 0; i < s->pair_n; i++)
		if (s->pairs[i].port == port && s->pairs[i].gpu == gpu)
			return &s->pairs[i];
	return NULL;
}

const struct rdma_device *rdma_session_nic(const struct rdma_session *s, size_t port)
{
	const struct machine *m = s->devices.machine;

	for (size_t i = 0; m && i < m->rdma_n; i++)
		if (strcmp(m->rdma[i].name, s->listing->ports[port].device) == 0)
			return &m->rdma[i];
	return NULL;
}

size_t rdma_endpoint(const struct rdma_session *s, size_t port)
{
	const struct rdma_device *d = rdma_session_nic(s, port);
	const struct topology *t = s->devices.topology;

	for (size_t i = t ? t->gpu_n : 0; d && t && i < t->endpoint_n; i++)
		if (t->endpoints[i].index == d->index)
			return i;
	return PATHS_NOWHERE;
}

/* ---- rates ---- */

/* Takes a limit that is lower than the one so far; 0 is none. */
static void limit(double *gbps, char *why, size_t size, double by, const char *text)
{
	if (by <= 0 || (*gbps > 0 && *gbps <= by))
		return;
	*gbps = by;
	snprintf(why, size, "%s", text);
}

static void expect(const struct rdma_session *s, struct rdma_pair *p, bool read, double *ret)
{
	const struct nic_port *port = &s->listing->ports[p->port];
	unsigned nic = rdma_place_of_port(s, p->port), gpu = rdma_place_of_gpu(s, p->gpu);
	const struct host_path *host = &s->paths->hosts[nic];
	const struct pair_path *path =
		read ? paths_pair(s->paths, gpu, nic) : paths_pair(s->paths, nic, gpu);
	char text[96];

	snprintf(text, sizeof(text), "the port: %.0f Gb/s in packets of %u bytes", port->line_gbps,
		 port->mtu);
	limit(ret, p->limit, sizeof(p->limit), port_payload_gbps(port), text);
	snprintf(text, sizeof(text), "the path between NIC and host%s%.64s",
		 *host->reason ? ": " : "", host->reason);
	limit(ret, p->limit, sizeof(p->limit), host->expected_gbps, text);
	snprintf(text, sizeof(text), "the path between the two%s%.64s", *path->reason ? ": " : "",
		 path->reason);
	limit(ret, p->limit, sizeof(p->limit), path->expected_gbps, text);
}

/* ---- ways ---- */

static void foresee(struct rdma_run *r, enum rdma_foresight f, const char *why)
{
	r->foresight = f;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

/* What the machine's facts say; a chain link's sentence is its reason. */
static void foresee_by(const struct path *path, const struct chain_link *l, struct rdma_run *r)
{
	enum rdma_foresight f = l->state == CHAIN_OK    ? RDMA_CAN
				: l->state == CHAIN_BAD ? RDMA_CANNOT
							: RDMA_UNFORESEEN;
	char why[RDMA_WHY];

	foresee(r, f, l->reason == REASON_NONE ? "" : chain_explain(path, l, why, sizeof(why)));
}

static void foresee_gpu(const struct rdma_session *s, struct rdma_pair *p, size_t nic)
{
	const struct topology *t = s->devices.topology;
	size_t gpu = (size_t)s->devices.request.number[p->gpu];
	const struct preflight before = topology_preflight(t, gpu, nic);
	const struct path *path = topology_path(t, nic, gpu);

	for (size_t k = 0; k < p->run_n; k++)
		foresee_by(path,
			   p->runs[k].way == REGION_DMABUF ? &before.dma_buf : &before.peermem,
			   &p->runs[k]);
	path_class_name(path, p->class, sizeof(p->class));
}

/* The NIC's driver was asked itself, which outweighs what is known of drivers. */
static void ask_driver(const struct rdma_session *s, struct rdma_pair *p)
{
	int takes = s->listing->ports[p->port].takes_dmabuf;
	int pages = s->listing->ports[p->port].pages;

	for (size_t k = 0; k < p->run_n; k++) {
		if (p->runs[k].way == REGION_ON_DEMAND && pages == 0)
			foresee(&p->runs[k], RDMA_CANNOT,
				"the NIC has no on-demand paging for all that is measured");
		if (p->runs[k].way == REGION_DMABUF && takes == 0)
			foresee(&p->runs[k], RDMA_CANNOT,
				"the NIC's driver, or its library, refused to register a dma-buf");
	}
}

void rdma_foresee(struct rdma_session *s, struct rdma_pair *p)
{
	size_t endpoint = rdma_endpoint(s, p->port);

	if (p->gpu >= 0 && endpoint != PATHS_NOWHERE)
		foresee_gpu(s, p, endpoint);
	ask_driver(s, p);
	if (endpoint != PATHS_NOWHERE) { /* else software: its rate is the processor's */
		expect(s, p, false, &p->write_gbps);
		expect(s, p, true, &p->read_gbps);
	}
	rdma_expect_told(s, &p->write_gbps, &p->read_gbps, p->limit, sizeof(p->limit));
}
