/* SPDX-License-Identifier: Apache-2.0 */
/* What each card can do with which driver, as a document. */
#pragma once

struct strbuf;

void report_support_markdown(struct strbuf *out);
