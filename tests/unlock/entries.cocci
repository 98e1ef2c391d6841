// SPDX-License-Identifier: Apache-2.0
// Where page-table entries for memory of another GPU are made. Where the sources know peers through BAR1
// themselves, nothing is to be found.

@native@
symbol isBar1P2PSupported;
@@
isBar1P2PSupported

@locals depends on !native@
typedef NV_STATUS;
identifier status;
position p;
@@
nvGpuOpsBuildExternalAllocPtes(...)
{
	...
	NV_STATUS status@p = NV_OK;
	... when any
}

@script:python@
p << locals.p;
@@
print("PLACE", "pte-locals", p[0].file, p[0].line, p[0].current_element)

@volatility depends on !native@
expression to;
position p;
@@
to = nvGpuOpsGetExternalAllocVolatility(...)@p

@script:python@
p << volatility.p;
@@
print("PLACE", "pte-base", p[0].file, p[0].line_end, p[0].current_element)

@encode depends on !native@
position p;
@@
nvGpuOpsBuildExternalAllocPtes(...)
{
	<+...
	kgmmuEncodePhysAddrs@p(...)
	...+>
}

@script:python@
p << encode.p;
@@
print("PLACE", "pte-addresses", p[0].file, p[0].line, p[0].current_element)

// Where they do know them, compressible memory is told from other just before entries are made.
@compressed depends on native@
expression kind;
position p;
symbol FB_IS_KIND_COMPRESSIBLE;
identifier is;
@@
nvGpuOpsBuildExternalAllocPtes(...)
{
	<+...
	is = memmgrIsKind_HAL(..., FB_IS_KIND_COMPRESSIBLE, kind)@p
	...+>
}

@script:python@
p << compressed.p;
@@
print("PLACE", "pte-compressed", p[0].file, p[0].line_end, p[0].current_element)

// And the base of BAR1 is added to addresses of memory, in two functions.
@bound depends on native@
position p;
@@
nvGpuOpsBuildExternalAllocPtes(...)
{
	<+...
	_nvGpuOpsEncodeBar1P2PAddrs@p(...)
	...+>
}

@script:python@
p << bound.p;
@@
print("PLACE", "pte-bound", p[0].file, p[0].line, p[0].current_element)

@address depends on native@
position p;
@@
nvGpuOpsBuildExternalAllocPhysAddrs(...)
{
	<+...
	_nvGpuOpsEncodeBar1P2PAddrs@p(...)
	...+>
}

@script:python@
p << address.p;
@@
print("PLACE", "address-bound", p[0].file, p[0].line, p[0].current_element)
