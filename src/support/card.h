/* SPDX-License-Identifier: Apache-2.0 */
/* What a card is: its chip and the class it is sold in, by name and compute capability, else by its
 * PCI device id. */
#pragma once

#include "machine/machine.h"

/* NVIDIA sells one chip in several classes, and offers P2P by class. */
enum card_class {
	CARD_GEFORCE,
	CARD_PROFESSIONAL, /* RTX, Quadro, TITAN */
	CARD_DATA_CENTRE,
	CARD_MINING, /* CMP */
	CARD_CLASS_N,
};

/* The kernel modules that drive a chip. */
enum chip_modules { CHIP_EITHER, CHIP_OPEN, CHIP_PROPRIETARY };

/* One compute capability; its chips differ in nothing that P2P depends on. */
struct chip {
	int compute_capability; /* major * 10 + minor: 86, 120 */
	const char *name;       /* "Ampere (GA102 to GA107)" */
	enum chip_modules modules;
	bool nvswitch;      /* sold on boards with NVSwitches too */
	bool fabric;        /* registers with them, and NVML tells how far it got */
	bool mig;           /* some of its cards can be split */
	int dma_bits;       /* of the host's addresses that it can reach */
	double nvlink_gbps; /* GB/s one way per NVLink; 0: none */
};

/* All chips that are known, in ascending order. */
const struct chip *chip_table(size_t *ret_n);
const struct chip *card_chip(const struct gpu *g);

/* 86, 89, 90, 120 ...; the driver's answer if there is one. */
struct fact_int card_compute_capability(const struct gpu *g);
/* enum card_class. Where only the device id is known, professional and data-centre cards of one chip
 * are not distinguished: professional. */
struct fact_int card_class(const struct gpu *g);
struct fact_int card_is_geforce(const struct gpu *g);
const char *card_class_word(enum card_class c); /* "GeForce" */
/* Bits of the host's addresses that it can reach; 0: the chip is unknown. */
int card_dma_bits(const struct gpu *g);
/* Cards of this chip that are sold in this class may have NVLink. */
bool chip_has_nvlink(const struct chip *c, enum card_class class);
/* GB/s one way per NVLink; 0: none, or the chip is unknown. */
double card_nvlink_gbps(const struct gpu *g);
/* The NVLinks that a card of this model has in use on a board with NVSwitches; 0: it is not of such a model, or unknown. */
unsigned card_board_links(const struct gpu *g);
/*
 * NVLink 5, from B200 on: the fabric manager reaches its switches by management datagrams of InfiniBand, and does not start
 * without ib_umad and nvlsm (Fabric Manager User Guide, 1.5).
 */
bool card_needs_nvlsm(const struct gpu *g);
/* The card is known to have no NVLink; false: it has, a bridge may be missing, or the chip is
 * unknown. */
bool card_lacks_nvlink(const struct gpu *g);
/* Both chips are known to be of one generation: CUDA's library refuses other pairs. */
bool card_same_generation(const struct gpu *a, const struct gpu *b);
/* They are known to be of two. */
bool card_other_generation(const struct gpu *a, const struct gpu *b);
/* 1: GPUDirect RDMA exists for the chip; 0: it is older. */
struct fact_int card_has_gdr(const struct gpu *g);
/* 1: the firmware's console or a screen that is in use is on it, which takes room in BAR1. A monitor
 * that is only plugged in does not: the driver counts the console's memory. */
struct fact_int card_has_console(const struct gpu *g);
