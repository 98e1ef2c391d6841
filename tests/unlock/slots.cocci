// SPDX-License-Identifier: Apache-2.0
// Slots of the chips' function table about P2P through BAR1 and the static mapping, which some chips fill
// with Hopper's function and others with a stub, whose name ends in six hexadecimal digits.

@hopper@
identifier slot =~ "Bar1P2P|StaticBar1Mapping";
identifier name =~ "_GH100$";
expression object;
@@
object->slot = &name

@stub@
identifier hopper.slot;
identifier name =~ "_[0-9a-f]{6}$";
expression object;
position p;
@@
object->slot = &name@p

@script:python@
slot << hopper.slot;
p << stub.p;
@@
print("PLACE", slot.strip("_"), p[0].file, p[0].line, "-")
