/* SPDX-License-Identifier: Apache-2.0 */
/* Which releases of the open kernel modules are known not to build on which kernels. */
#pragma once

/*
 * One sentence without its full stop, constant text; NULL: nothing is known against it. As released:
 * packages carry patches of their own at times, and enterprise kernels changes of newer ones.
 */
const char *need_kernel_trouble(const char *driver_release, const char *kernel_release);
