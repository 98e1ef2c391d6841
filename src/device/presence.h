/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is on this host, known without waiting: each rank announces itself before it enters a call
 * that no rank leaves before all have entered it. Behind that call all that will ever come are
 * announced; whoever is not is on another host, in another network namespace, of another user, or
 * does not announce itself.
 */
#pragma once

/*
 * Until the descriptor is closed, or the process ends. A negative errno: the others will miss it.
 */
int presence_announce(const char *key, int rank);
/* How many of the ranks 0 .. n-1 are announced. */
int presence_count(const char *key, int n);
