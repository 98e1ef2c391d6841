// SPDX-License-Identifier: Apache-2.0
// Which `if` leads to the mailbox: in the two functions for Pascal to Ada, BAR1 has to come before it.

@mailbox@
position p;
identifier verb =~ "P2PMappingForMailbox_HAL$";
expression type;
@@
if@p (type)
{
	return verb(...);
}

@script:python@
p << mailbox.p;
@@
rows = {"kbusCreateP2PMapping_GP100": "create-bar1", "kbusRemoveP2PMapping_GP100": "remove-bar1"}
print("PLACE", rows.get(p[0].current_element, "dispatch"), p[0].file, p[0].line, p[0].current_element)
