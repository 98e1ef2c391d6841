/* SPDX-License-Identifier: Apache-2.0 */
/* machine/rdma.c: devices, ports and GIDs as /sys/class/infiniband shows them. */
#include "base/source.h"
#include "machine/machine.h"
#include "recording/recording.h"

#include <cmocka.h>
#include <string.h>

static const char two_nics[] = "onehop recording 1\n"
			       "[sys/bus/pci/devices]\n"
			       "* 0000:65:00.0 0000:ca:00.0\n"
			       "[sys/bus/pci/devices/0000:65:00.0]\n"
			       "driver -> ../../../../bus/pci/drivers/mlx5_core\n"
			       "[sys/class/infiniband]\n"
			       "* mlx5_10 mlx5_2 rxe0\n"
			       "[sys/class/infiniband/mlx5_2]\n"
			       "device -> ../../../0000:65:00.0\n"
			       "fw_ver = 28.39.1002\n"
			       "hca_type = MT4129\n"
			       "board_id = MT_0000000838\n"
			       "node_guid = 0000:0000:0000:0001\n"
			       "[sys/class/infiniband/mlx5_2/ports]\n"
			       "* 1\n"
			       "[sys/class/infiniband/mlx5_2/ports/1]\n"
			       "state = 4: ACTIVE\n"
			       "phys_state = 5: LinkUp\n"
			       "link_layer = InfiniBand\n"
			       "rate = 400 Gb/sec (4X NDR)\n"
			       "[sys/class/infiniband/mlx5_2/ports/1/gids]\n"
			       "0 = fe80:0000:0000:0000:0000:0000:0000:0001\n"
			       "1 ! ENOENT\n"
			       "[sys/class/infiniband/mlx5_2/ports/1/gid_attrs/types]\n"
			       "0 = IB/RoCE v1\n"
			       "[sys/class/infiniband/mlx5_10]\n"
			       "device -> ../../../0000:ca:00.0\n"
			       "[sys/class/infiniband/mlx5_10/ports]\n"
			       "* 2 1\n"
			       "[sys/class/infiniband/mlx5_10/ports/1]\n"
			       "state = 1: DOWN\n"
			       "phys_state = 3: Disabled\n"
			       "link_layer = Ethernet\n"
			       "rate = 2.5 Gb/sec (1X SDR)\n"
			       "[sys/class/infiniband/mlx5_10/ports/1/gids]\n"
			       "0 = fe80:0000:0000:0000:0000:0000:0000:0002\n"
			       "1 = 0000:0000:0000:0000:0000:0000:0000:0000\n"
			       "2 = 0000:0000:0000:0000:0000:ffff:0a00:0001\n"
			       "3 = 0000:0000:0000:0000:0000:ffff:0a00:0001\n"
			       "4 = 0000:0000:0000:0000:0000:0000:0000:0000\n"
			       "[sys/class/infiniband/mlx5_10/ports/1/gid_attrs/types]\n"
			       "0 = IB/RoCE v1\n"
			       "1 ! EINVAL\n"
			       "2 = IB/RoCE v1\n"
			       "3 = RoCE v2\n"
			       "[sys/class/infiniband/mlx5_10/ports/2]\n"
			       "rate = fast\n"
			       "[sys/class/infiniband/rxe0]\n"
			       "device -> ! ENOENT\n";

static struct machine *read_text(const char *text)
{
	static const struct machine_request request = {.parts = MACHINE_PCI | MACHINE_RDMA};
	struct source *map = source_new_map("rdma");
	struct machine *m;

	assert_int_equal(recording_parse(text, strlen(text), "rdma", map), 0);
	m = machine_read(map, &request);
	source_free(map);
	return m;
}

static void devices_in_natural_order(void **state)
{
	struct machine *m = read_text(two_nics);

	(void)state;
	assert_true(fact_is(m->rdma_listed, 3));
	assert_int_equal(m->rdma_n, 3);
	assert_string_equal(m->rdma[0].name, "mlx5_2");
	assert_string_equal(m->rdma[1].name, "mlx5_10");
	assert_string_equal(m->rdma[2].name, "rxe0");
	assert_int_equal(m->rdma[2].index, 2);
	assert_ptr_equal(m->rdma[0].pci, &m->pci[0]);
	assert_ptr_equal(m->rdma[1].pci, &m->pci[1]);
	assert_null(m->rdma[2].pci);
	assert_string_equal(m->rdma[0].driver.value, "mlx5_core");
	assert_string_equal(m->rdma[0].firmware.value, "28.39.1002");
	assert_true(fact_unknown(m->rdma[1].driver));
	assert_true(fact_absent(m->rdma[2].driver));
	machine_free(m);
}

static void ports(void **state)
{
	struct machine *m = read_text(two_nics);
	const struct rdma_port *up = &m->rdma[0].ports[0], *down = &m->rdma[1].ports[0];

	(void)state;
	assert_string_equal(up->state.value, "ACTIVE");
	assert_string_equal(up->phys_state.value, "LinkUp");
	assert_int_equal(up->rate_mbps.value, 400000);
	assert_int_equal(m->rdma[1].port_n, 2);
	assert_int_equal(down->number, 1);
	assert_string_equal(down->state.value, "DOWN");
	assert_int_equal(down->rate_mbps.value, 2500);
	assert_true(fact_unknown(m->rdma[1].ports[1].rate_mbps));
	assert_true(fact_unknown(m->rdma[1].ports[1].state));
	assert_int_equal(m->trouble_n, 1);
	machine_free(m);
}

static void gids(void **state)
{
	struct machine *m = read_text(two_nics);
	const struct rdma_port *ib = &m->rdma[0].ports[0], *roce = &m->rdma[1].ports[0];

	(void)state;
	assert_int_equal(ib->gid_n, 1);
	assert_true(fact_is(ib->gids[0].type, GID_IB));
	assert_true(fact_is(ib->gids_listed, 1));
	assert_int_equal(roce->gid_n, 3); /* the empty one is no GID */
	assert_int_equal(roce->gids[1].index, 2);
	assert_true(fact_is(roce->gids[1].type, GID_ROCE_V1));
	assert_true(fact_is(roce->gids[2].type, GID_ROCE_V2));
	assert_true(fact_unknown(m->rdma[1].ports[1].gids_listed));
	machine_free(m);
}

static void no_stack_and_no_look_differ(void **state)
{
	struct machine *m = read_text("onehop recording 1\n[sys/class/infiniband]\n* ! ENOENT\n");

	(void)state;
	assert_true(fact_absent(m->rdma_listed));
	machine_free(m);
	m = read_text("onehop recording 1\n");
	assert_true(fact_unknown(m->rdma_listed));
	machine_free(m);
	m = read_text("onehop recording 1\n[sys/class/infiniband]\n*\n");
	assert_true(fact_is(m->rdma_listed, 0));
	machine_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_in_natural_order),
		cmocka_unit_test(ports),
		cmocka_unit_test(gids),
		cmocka_unit_test(no_stack_and_no_look_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
