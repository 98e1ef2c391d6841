/* SPDX-License-Identifier: Apache-2.0 */
/* What a card is: by its name and compute capability, else by its PCI device id. */
#pragma once

#include "machine/machine.h"

/* 86, 89, 90, 120 ...; the driver's answer if there is one. */
struct fact_int card_compute_capability(const struct gpu *g);
struct fact_int card_is_geforce(const struct gpu *g);
/* 1: over PCIe the card can do P2P through BAR1 only, and only with an edited open module (GeForce
 * 30, 40, 50); 0: it has mailboxes, or no P2P over PCIe at all. */
struct fact_int card_needs_bar1(const struct gpu *g);
/* 1: the firmware's console or a screen that is in use is on it, which takes room in BAR1. A monitor
 * that is only plugged in does not: the driver reckons with the console's memory. */
struct fact_int card_has_console(const struct gpu *g);
