/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of what a set of GPUs has made, by id, so that all of it can be freed. */
#include "device/cuda_impl.h"

#include "base/err.h"

#include <errno.h>
#include <stdlib.h>

static size_t free_slot(const struct cuda_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!t->items[i])
			return i;
	return t->n;
}

int cuda_table_add(struct cuda_table *t, size_t size, uint64_t *ret_id, void *ret_item)
{
	size_t slot = free_slot(t);
	void *item = calloc(1, size);

	if (item && slot == t->n) {
		void **items = realloc(t->items, (t->n + 1) * sizeof(*items));

		if (items) {
			t->items = items;
			t->n++;
		} else {
			free(item);
			item = NULL;
		}
	}
	if (!item)
		return err_set(ENOMEM, "no host memory for the tables of a set of GPUs");
	t->items[slot] = item;
	*ret_id = slot + 1;
	*(void **)ret_item = item;
	return 0;
}

void *cuda_table_get(const struct cuda_table *t, uint64_t id, const char *what)
{
	if (id - 1 < t->n && t->items[id - 1])
		return t->items[id - 1];
	err_set(EINVAL, "no %s %llu in this set of GPUs", what, (unsigned long long)id);
	return NULL;
}

void cuda_table_remove(struct cuda_table *t, uint64_t id)
{
	free(t->items[id - 1]);
	t->items[id - 1] = NULL;
}

void cuda_table_done(struct cuda_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->items[i]);
	free(t->items);
	*t = (struct cuda_table){0};
}
