/* SPDX-License-Identifier: Apache-2.0 */
/* unit/fake_device: passes on, writes down, fails and hangs where it is told to. */
#include "fake_device.h"

#include "device_rig.h"

#include <errno.h>

static struct device_set *fake(const struct fake_plan *plan)
{
	struct device_set *s;

	assert_ok(fake_open(rig_open(2, FAULT_NONE), plan, &s));
	return s;
}

static void writes_calls_down(void **state)
{
	struct device_set *s = fake(&(struct fake_plan){0});
	struct memory a = rig_alloc(s, 0, 4096), b = rig_alloc(s, 1, 4096), h = rig_alloc(s, -1, 8);
	struct stream stream = rig_stream(s, 0);
	double us;

	(void)state;
	assert_string_equal(s->ops->name, "fake");
	assert_int_equal(s->n, 2);
	rig_peers(s);
	assert_ok(s->ops->copy(s, stream, &b, 0, &a, 0, 4096));
	assert_ok(s->ops->copy(s, stream, &a, 0, &h, 0, 8));
	assert_ok(s->ops->enqueue_time(s, &us));
	RIG_LAUNCH(s, stream, fill, 1, rig_address(s, &a, 0), 8, 0, 1);
	rig_wait(s, stream);
	assert_string_equal(
		fake_calls(s),
		"alloc 0 4096\nalloc 1 4096\nalloc host 8\nstream_new 0\n"
		"peer_access 0->1 on\npeer_access 1->0 on\ncopy 0->1 4096\n"
		"copy host->0 8\nenqueue_time\naddress 0 for 0\nlaunch 0 fill\nwait 0\n");
	device_close(s);
}

static void fails_once(void **state)
{
	struct device_set *s = fake(&(struct fake_plan){.op = "alloc", .nth = 2, .error = -ENOMEM});
	struct memory m;

	(void)state;
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 8, &m));
	assert_int_equal(s->ops->alloc(s, 0, MEMORY_DEVICE, 8, &m), -ENOMEM);
	assert_string_equal(err_msg(), "alloc, call 2, was made to fail");
	assert_ok(s->ops->alloc(s, 0, MEMORY_DEVICE, 8, &m));
	device_close(s);
}

static void fails_from_then_on(void **state)
{
	struct device_set *s = fake(&(struct fake_plan){.nth = 3, .error = -EIO, .lasting = true});
	struct memory m = rig_alloc(s, 0, 8);
	struct stream stream = rig_stream(s, 0);

	(void)state;
	assert_int_equal(s->ops->wait(s, stream, 1), -EIO);
	assert_int_equal(s->ops->free(s, &m), -EIO);
	assert_string_equal(fake_calls(s), "alloc 0 8\nstream_new 0\nwait 0\nfree 0\n");
	device_close(s);
}

static void hangs(void **state)
{
	struct device_set *s = fake(&(struct fake_plan){.op = "wait", .nth = 1});
	struct stream stream = rig_stream(s, 0);

	(void)state;
	assert_int_equal(s->ops->wait(s, stream, 1), -ETIMEDOUT);
	assert_string_equal(err_msg(), "wait was made to hang");
	rig_wait(s, stream);
	device_close(s);
	s = fake(&(struct fake_plan){.op = "stream_new", .nth = 1});
	assert_int_equal(s->ops->stream_new(s, 0, &stream), -ETIMEDOUT);
	device_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_calls_down),
		cmocka_unit_test(fails_once),
		cmocka_unit_test(fails_from_then_on),
		cmocka_unit_test(hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
