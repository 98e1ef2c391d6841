/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML itself costs: "nvml_start" opens the library, starts and stops it, and prints the
 * milliseconds of each; "nvml_start calls" also times single calls, to show what a reader of the
 * topology should ask for and what not. Reads only. Needs no header of NVIDIA's.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIBRARY "libnvidia-ml.so.1"

typedef void *device;

struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct field {
	unsigned id, scope;
	long long timestamp, latency;
	int type, result;
	unsigned long long value;
};

static void *library;

static void *find(const char *name)
{
	void *p = dlsym(library, name);

	if (!p) {
		fprintf(stderr, "nvml_start: %s has no %s\n", LIBRARY, name);
		exit(2);
	}
	return p;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

#define TIME(what, expression)                                                                     \
	do {                                                                                       \
		double start_ = now_ms();                                                          \
		int result_ = (expression);                                                        \
		printf("  %-48s %9.3f ms  result %d\n", what, now_ms() - start_, result_);         \
	} while (0)

#define MAX_FIELDS 36

static void time_fields(device d, const char *what, unsigned id, int n)
{
	int (*fields)(device, int, struct field *) = find("nvmlDeviceGetFieldValues");
	struct field f[MAX_FIELDS];

	memset(f, 0, sizeof(f));
	for (int i = 0; i < n; i++) {
		f[i].id = id;
		f[i].scope = (unsigned)i;
	}
	TIME(what, fields(d, n, f));
	printf("    first: result %d value %llu; last: result %d value %llu\n", f[0].result,
	       f[0].value, f[n - 1].result, f[n - 1].value);
}

static void time_device(device d)
{
	int (*pci_info)(device, struct pci *) = find("nvmlDeviceGetPciInfo_v3");
	int (*name)(device, char *, unsigned) = find("nvmlDeviceGetName");
	int (*link_state)(device, unsigned, unsigned *) = find("nvmlDeviceGetNvLinkState");
	int (*remote_type)(device, unsigned, unsigned *) =
		find("nvmlDeviceGetNvLinkRemoteDeviceType");
	int (*remote)(device, unsigned, struct pci *) = find("nvmlDeviceGetNvLinkRemotePciInfo_v2");
	char text[96];
	struct pci pci;
	unsigned value;

	TIME("nvmlDeviceGetPciInfo_v3", pci_info(d, &pci));
	TIME("nvmlDeviceGetName", name(d, text, sizeof(text)));
	time_fields(d, "field NVLINK_LINK_COUNT", 91, 1);
	time_fields(d, "field NVSWITCH_CONNECTED_LINK_COUNT", 147, 1);
	time_fields(d, "field NVLINK_GET_STATE, 18 links in one call", 165, 18);
	time_fields(d, "field NVLINK_GET_VERSION, 18 links in one call", 166, 18);
	TIME("nvmlDeviceGetNvLinkState, link 0", link_state(d, 0, &value));
	TIME("nvmlDeviceGetNvLinkRemoteDeviceType, link 0", remote_type(d, 0, &value));
	TIME("nvmlDeviceGetNvLinkRemotePciInfo, link 0", remote(d, 0, &pci));
	printf("    remote %.32s\n", pci.bus_id);
}

static void time_calls(void)
{
	int (*count)(unsigned *) = find("nvmlDeviceGetCount_v2");
	int (*by_index)(unsigned, device *) = find("nvmlDeviceGetHandleByIndex_v2");
	int (*ancestor)(device, device, int *) = find("nvmlDeviceGetTopologyCommonAncestor");
	int (*p2p)(device, device, int, int *) = find("nvmlDeviceGetP2PStatus");
	int (*cuda)(int *) = find("nvmlSystemGetCudaDriverVersion_v2");
	device d[2] = {NULL, NULL};
	unsigned n = 0;
	int value;

	TIME("nvmlDeviceGetCount_v2", count(&n));
	for (unsigned i = 0; i < n && i < 2; i++)
		TIME("nvmlDeviceGetHandleByIndex_v2", by_index(i, &d[i]));
	for (unsigned i = 0; i < n && i < 2; i++)
		if (d[i])
			time_device(d[i]);
	if (d[0] && d[1]) {
		TIME("nvmlDeviceGetTopologyCommonAncestor", ancestor(d[0], d[1], &value));
		TIME("nvmlDeviceGetTopologyCommonAncestor again", ancestor(d[0], d[1], &value));
		TIME("nvmlDeviceGetP2PStatus NVLINK", p2p(d[0], d[1], 2, &value));
		TIME("nvmlDeviceGetP2PStatus READ", p2p(d[0], d[1], 0, &value));
	}
	TIME("nvmlSystemGetCudaDriverVersion_v2 (maps libcuda)", cuda(&value));
}

int main(int argc, char **argv)
{
	double start = now_ms(), opened, started;
	int (*init)(void), (*stop)(void);
	int result;

	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "nvml_start: %s\n", dlerror());
		return 2;
	}
	init = find("nvmlInit_v2");
	stop = find("nvmlShutdown");
	opened = now_ms();
	result = init();
	started = now_ms();
	if (result != 0) {
		fprintf(stderr, "nvml_start: nvmlInit_v2 gives %d\n", result);
		return 1;
	}
	if (argc > 1 && strcmp(argv[1], "calls") == 0)
		time_calls();
	printf("open %.3f init %.3f", opened - start, started - opened);
	started = now_ms();
	stop();
	printf(" stop %.3f ms\n", now_ms() - started);
	return 0;
}
