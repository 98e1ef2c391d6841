/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/gpu_impl.h"

#include "base/alloc.h"

#include <jansson.h>

static json_t *refuse(struct reader *r, const struct gpu_document *d, json_t *doc,
		      const char *where, const char *why, const char **ret_why)
{
	read_trouble(r, where, "%s", why);
	*ret_why = arena_printf(r->m->arena, "%s is malformed", d->name);
	json_decref(doc);
	return NULL;
}

static json_t *malformed(struct reader *r, const struct gpu_document *d, json_t *doc,
			 const json_error_t *error, const char **ret_why)
{
	return refuse(r, d, doc, arena_printf(r->m->arena, "%s:%d", d->name, error->line),
		      doc ? "not an object" : arena_strdup(r->m->arena, error->text), ret_why);
}

json_t *gpu_document(struct reader *r, const struct gpu_document *d, const char **ret_why)
{
	struct fact_str text;
	json_error_t error;
	const char *why;
	json_t *doc;

	if (!(r->request->parts & d->parts)) {
		*ret_why = arena_printf(r->m->arena, "%s was not queried", d->whom);
		return NULL;
	}
	text = d->read(r);
	if (!fact_known(text)) {
		*ret_why = fact_absent(text) ? d->missing : text.from;
		return NULL;
	}
	doc = json_loads(text.value, 0, &error);
	if (!json_is_object(doc))
		return malformed(r, d, doc, &error, ret_why);
	why = json_string_value(json_object_get(doc, "unavailable"));
	if (!why && !json_is_array(json_object_get(doc, "gpus")))
		return refuse(r, d, doc, d->name,
			      "holds neither a list \"gpus\" nor \"unavailable\"", ret_why);
	if (why)
		*ret_why = arena_printf(r->m->arena, "%s: %s", d->speaker, why);
	else if (source_stated(r->s)) /* texts were read, and no driver was asked */
		*ret_why = arena_strdup(r->m->arena, source_stated(r->s));
	else
		*ret_why = arena_printf(r->m->arena, "not queried from %s", d->whom);
	return doc;
}
