// SPDX-License-Identifier: Apache-2.0
// Managed memory: where the driver for it says what aperture a peer has, lets two GPUs use each other's memory,
// makes a map of a peer's memory for copies, and drops what was cached of a peer.

@declared@
position p;
typedef uvm_aperture_t, uvm_gpu_t;
identifier local, remote;
@@
uvm_aperture_t uvm_gpu_peer_aperture@p(uvm_gpu_t *local, uvm_gpu_t *remote);

@script:python@
p << declared.p;
@@
print("PLACE", "managed-declaration", p[0].file, p[0].line, "-")

@defined@
position p;
identifier local, remote;
@@
uvm_aperture_t uvm_gpu_peer_aperture@p(uvm_gpu_t *local, uvm_gpu_t *remote) { ... }

@script:python@
p << defined.p;
@@
print("PLACE", "managed-predicate", p[0].file, p[0].line, "-")

// The first of the masks that are set, in one direction.
@opened@
position p;
typedef uvm_va_space_t;
identifier space, gpu0, gpu1;
@@
enable_peers(uvm_va_space_t *space, uvm_gpu_t *gpu0, uvm_gpu_t *gpu1)
{
	<+...
	processor_mask_array_set@p(space->can_access, gpu0->id, gpu1->id);
	...+>
}

@script:python@
p << opened.p;
@@
print("PLACE", "managed-gate", p[0].file, p[0].line, p[0].current_element)

// Behind the last of them: they are looked over.
@looked_over@
position p;
expression space;
@@
enable_peers(...)
{
	<+...
	UVM_ASSERT@p(va_space_check_processors_masks(space));
	...+>
}

@script:python@
p << looked_over.p;
@@
print("PLACE", "managed-enabled", p[0].file, p[0].line, p[0].current_element)

@mapped@
position p;
expression gpu, peer;
symbol UVM_GPU_PEER_COPY_MODE_VIRTUAL;
@@
gpu->parent->peer_copy_mode != UVM_GPU_PEER_COPY_MODE_VIRTUAL || peer->mem_info.size@p == 0

@script:python@
p << mapped.p;
@@
print("PLACE", "managed-identity", p[0].file, p[0].line, p[0].current_element)

// What is dropped is one of two kinds, told by the first of two tests.
@drops@
@@
uvm_ext_gpu_map_destroy(...)
{
	<+...
	uvm_mmu_l2_invalidate(...)
	...+>
}

@dropped depends on drops@
position p;
expression map;
@@
uvm_ext_gpu_map_destroy(...)
{
	<+...
	map->is_sysmem@p
	...+>
}

@script:python@
p << dropped.p;
@@
print("PLACE", "unmap-cache", p[0].file, p[0].line, p[0].current_element)
