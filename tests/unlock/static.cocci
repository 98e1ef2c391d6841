// SPDX-License-Identifier: Apache-2.0
// The static BAR1 of 535 to 560, which Hopper brought: what asks for it before Hopper, too.

@policy@
@@
_kp2pCapsGetStatusOverPcieBar1(...)
{
	<+...
	_kp2pCapsCheckStatusOverridesForPcie(...)
	...+>
}

// The answer of the host's chipset comes last in that function, whatever was forced.
@caps depends on !policy@
symbol LEVEL_ERROR;
position p;
@@
NV_CHECK_OK_OR_RETURN@p(LEVEL_ERROR, _p2pCapsGetHostSystemStatusOverPcieBar1(...))

@script:python@
p << caps.p;
@@
print("PLACE", "static-caps", p[0].file, p[0].line, p[0].current_element)

// The CPU's mappings of memory: the flag, and memory of the card.
@mapping@
expression bus, gfid;
position p;
symbol ADDR_FBMEM;
@@
bus->bar1[gfid].bStaticBar1Enabled@p && (memdescGetAddressSpace(...) == ADDR_FBMEM)

@script:python@
p << mapping.p;
@@
rows = {"_kbusMapAperture_GM107": "static-map", "_kbusUnmapAperture_GM107": "static-unmap"}
print("PLACE", rows.get(p[0].current_element, "mapping"), p[0].file, p[0].line, p[0].current_element)

// Compressible memory: the flag behind a test of the kind.
@compressed@
expression bus;
symbol GPU_GFID_PF;
identifier kind;
position p;
@@
kind && bus->bar1[GPU_GFID_PF].bStaticBar1Enabled@p

@script:python@
p << compressed.p;
@@
print("PLACE", "static-physical-memory", p[0].file, p[0].line, "-")

@of_client@
expression bus, gpu;
identifier kind, gfid;
position p;
@@
kind && (vgpuGetCallingContextGfid(gpu, &gfid) == NV_OK) && bus->bar1[gfid].bStaticBar1Enabled@p

@script:python@
p << of_client.p;
@@
print("PLACE", "static-video-memory", p[0].file, p[0].line, "-")

// The one question that 545 made of these.
@enabled@
expression bus, gpu;
identifier gfid;
position p;
@@
return@p ((vgpuGetCallingContextGfid(gpu, &gfid) == NV_OK) && bus->bar1[gfid].bStaticBar1Enabled);

@script:python@
p << enabled.p;
@@
print("PLACE", "static-enabled", p[0].file, p[0].line, p[0].current_element)

@pair@
identifier gpu, bus, gpu2, bus2;
position p, p2;
@@
!kbusIsStaticBar1Enabled@p(gpu, bus) || !kbusIsStaticBar1Enabled@p2(gpu2, bus2)

@script:python@
p << pair.p;
p2 << pair.p2;
@@
print("PLACE", "static-first", p[0].file, p[0].line, p[0].current_element)
print("PLACE", "static-second", p2[0].file, p2[0].line, p2[0].current_element)

// How a peer's memory has to lie.
@aligned@
symbol RM_PAGE_SIZE_512M;
expression address;
position p;
@@
if (!NV_IS_ALIGNED64(address, RM_PAGE_SIZE_512M@p)) { ... }

@script:python@
p << aligned.p;
@@
print("PLACE", "alignment", p[0].file, p[0].line, p[0].current_element)
