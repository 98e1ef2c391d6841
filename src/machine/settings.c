/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/settings.h"

#include "base/array.h"
#include "machine/machine.h"

#include <string.h>
#include <strings.h>

/* Names that end in '_' are beginnings. Of Open MPI's only those that decide how GPU memory travels: the others
 * name hosts and folders. */
static const struct {
	enum library library;
	const char *name;
} names[] = {
	{LIBRARY_NCCL, "NCCL_"},
	{LIBRARY_NCCL, "CCL_"}, /* a lost first letter; oneCCL's have other words behind it */
	{LIBRARY_UCX, "UCX_"},
	{LIBRARY_NVSHMEM, "NVSHMEM_"},
	{LIBRARY_OPEN_MPI, "OMPI_MCA_pml"},
	{LIBRARY_OPEN_MPI, "OMPI_MCA_btl"},
	{LIBRARY_OPEN_MPI, "OMPI_MCA_opal_common_ucx_"},
	{LIBRARY_GLOO, "GLOO_SOCKET_IFNAME"},
	{LIBRARY_GLOO, "TP_SOCKET_IFNAME"},
};

const char *library_name(enum library l)
{
	static const char *const words[LIBRARY_N] = {"NCCL", "UCX", "Open MPI", "NVSHMEM", "Gloo"};

	return (unsigned)l < LIBRARY_N ? words[l] : "?";
}

static bool matches(const char *name, size_t row)
{
	size_t n = strlen(names[row].name);

	if (names[row].library == LIBRARY_NCCL)
		return strncasecmp(name, names[row].name, n) == 0;
	if (strncmp(name, names[row].name, n) != 0)
		return false;
	return names[row].name[n - 1] == '_' || !name[n] || name[n] == '=';
}

enum library library_of_variable(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (matches(name, i))
			return names[i].library;
	return LIBRARY_N;
}

void settings_judge(struct setting *settings, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		settings[i].in_force = true;
		for (size_t k = 0; k < i && settings[i].in_force; k++)
			settings[i].in_force = strcmp(settings[k].name, settings[i].name) != 0;
	}
}
