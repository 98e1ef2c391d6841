/* SPDX-License-Identifier: Apache-2.0 */
/* How bad something is that was found. */
#pragma once

enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR, SEVERITY_N };
