/* SPDX-License-Identifier: Apache-2.0 */
/* var/lib/onehop/in-force: whatever lies in its place, read and compared with a machine. */
#include "base/source.h"
#include "diagnose/diagnose.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct machine_request request = {.parts = MACHINE_TO_JUDGE};
	static const char boot[] = "11111111-2222-3333-4444-555555555555\n";
	static const char line[] = "ro quiet iommu=pt\n";
	static const char params[] = "EnableResizableBar: 0\nRegistryDwords: \"A=1;B=2\"\n";
	struct source *s = source_new_map("fuzz");
	struct machine *m;
	struct topology *t;

	source_put_file(s, "var/lib/onehop/in-force", (const char *)data, size);
	source_put_file(s, "proc/sys/kernel/random/boot_id", boot, sizeof(boot) - 1);
	source_put_file(s, "proc/cmdline", line, sizeof(line) - 1);
	source_put_file(s, "proc/driver/nvidia/params", params, sizeof(params) - 1);
	m = machine_read(s, &request);
	t = topology_new(m);
	diagnosis_free(diagnose(t));
	topology_free(t);
	machine_free(m);
	source_free(s);
	return 0;
}
