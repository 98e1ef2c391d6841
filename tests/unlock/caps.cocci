// SPDX-License-Identifier: Apache-2.0
// What a pair is said to be able to do. NVIDIA writes a function's type on the line before its name.

@bar1@
position p;
type result;
@@
static result _kp2pCapsGetStatusOverPcieBar1@p(...) { ... }

@script:python@
p << bar1.p;
@@
print("PLACE", "caps-mapped", p[0].file, int(p[0].line) - 1, "-")

@forced@
position p;
@@
_kp2pCapsGetStatusOverPcieBar1(...)
{
	<+...
	_kp2pCapsCheckStatusOverridesForPcie@p(...)
	...+>
}

@script:python@
p << forced.p;
@@
print("PLACE", "caps-forced", p[0].file, p[0].line, p[0].current_element)

@answers@
position p;
type result;
@@
result p2pGetCapsStatus@p(...) { ... }

@script:python@
p << answers.p;
@@
print("PLACE", "caps-mailbox", p[0].file, int(p[0].line) - 1, "-")

// The block that ends with BAR1 as the answer.
@neither@
position p;
expression connectivity;
symbol P2P_CONNECTIVITY_PCIE_BAR1;
@@
 (*connectivity) = P2P_CONNECTIVITY_PCIE_BAR1@p;

@script:python@
p << neither.p;
@@
print("PLACE", "caps-neither", p[0].file, int(p[0].line) + 1, p[0].current_element)
