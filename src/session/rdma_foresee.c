/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a NIC and a GPU before anything is registered. */
#include "session/rdma_session_impl.h"

#include "support/nic.h"

#include <stdio.h>
#include <string.h>

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
	snprintf(text, sizeof(text), "the NIC's way to the host%s%.64s", *host->reason ? ": " : "",
		 host->reason);
	limit(ret, p->limit, sizeof(p->limit), host->expected_gbps, text);
	snprintf(text, sizeof(text), "the way between the two%s%.64s", *path->reason ? ": " : "",
		 path->reason);
	limit(ret, p->limit, sizeof(p->limit), path->expected_gbps, text);
}

/* ---- ways ---- */

static void foresee(struct rdma_run *r, enum rdma_foresight f, const char *why)
{
	r->foresight = f;
	snprintf(r->why, sizeof(r->why), "%s", why);
}

/* The NIC's driver was asked itself. */
static void foresee_dmabuf(const struct rdma_session *s, const struct rdma_pair *p,
			   struct rdma_run *r)
{
	const struct gpu *g = devices_gpu(&s->devices, (size_t)p->gpu);
	struct fact_int exports =
		g ? gpu_exports_dma_buf(s->devices.machine, g) : fact_int_unknown("a stand-in");
	int takes = s->listing->ports[p->port].takes_dmabuf;

	if (takes == 0)
		foresee(r, RDMA_CANNOT,
			"the NIC's driver, or its library, registers no dma-bufs: it was asked");
	else if (fact_is(exports, 0))
		foresee(r, RDMA_CANNOT, "NVIDIA's driver exports no dma-buf of this GPU");
	else if (takes == 1 && fact_is(exports, 1))
		foresee(r, RDMA_CAN, "the NIC's driver takes dma-bufs, and NVIDIA's exports them");
}

static void foresee_peer(const struct rdma_session *s, struct rdma_run *r)
{
	const struct machine *m = s->devices.machine;

	if (!m)
		return;
	if (fact_is(m->peermem.registered, 0) || fact_absent(m->peermem.registered))
		foresee(r, RDMA_CANNOT, "nvidia-peermem is not registered");
	else if (fact_is(m->peermem.registered, 1))
		foresee(r, RDMA_CAN, "nvidia-peermem is registered");
}

void rdma_foresee(struct rdma_session *s, struct rdma_pair *p)
{
	size_t endpoint = rdma_endpoint(s, p->port);

	for (size_t k = 0; k < p->run_n; k++) {
		if (p->runs[k].way == REGION_DMABUF)
			foresee_dmabuf(s, p, &p->runs[k]);
		else if (p->runs[k].way == REGION_PEER)
			foresee_peer(s, &p->runs[k]);
	}
	if (endpoint == PATHS_NOWHERE) /* software: its rate is the processor's */
		return;
	expect(s, p, false, &p->write_gbps);
	expect(s, p, true, &p->read_gbps);
	if (p->gpu >= 0)
		path_class_name(topology_path(s->devices.topology, endpoint,
					      (size_t)s->devices.request.number[p->gpu]),
				p->class, sizeof(p->class));
}
