/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `bench p2p` as figures, each with the rate that its path should give. */
#pragma once

#include "bench/p2p.h"
#include "result/figures.h"

/* What the paths should give for a cell of the result, GB/s; 0: unknown. */
double p2p_expected_gbps(const struct p2p_result *r, const struct paths *paths,
			 const struct p2p_cell *cell);
/* Its texts are the metric's. */
struct figure p2p_figure(const struct p2p_result *r, const struct paths *paths,
			 const struct p2p_cell *cell);
/* All cells but those with wrong data. Both ways counts for either ordered pair. figures_free. */
struct figures *p2p_figures(const struct p2p_result *r, const struct paths *paths,
			    const struct device_info *devices, size_t n);

struct p2p_counts {
	size_t cells, measured, checked, wrong;
};
void p2p_count(const struct p2p_result *result, struct p2p_counts *ret);
