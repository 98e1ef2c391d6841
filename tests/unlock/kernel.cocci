// SPDX-License-Identifier: Apache-2.0
// The kernel's side: the function that resizes BARs, and its call where the tree does not ask the kernel how
// many arguments that has.

@resizer@
identifier device;
position p;
type result;
@@
static result nv_resize_pcie_bars@p(struct pci_dev *device) { ... }

@script:python@
p << resizer.p;
@@
print("PLACE", "marker", p[0].file, p[0].line, "-")

@asks@
@@
pci_resize_resource(..., 0)

@call depends on !asks@
symbol NV_GPU_BAR1;
expression device, size;
position p;
@@
pci_resize_resource@p(device, NV_GPU_BAR1, size)

@script:python@
p << call.p;
@@
print("PLACE", "resize", p[0].file, p[0].line, p[0].current_element)

@script:python depends on call@
p << resizer.p;
@@
print("PLACE", "resize-helper", p[0].file, p[0].line, "-")
