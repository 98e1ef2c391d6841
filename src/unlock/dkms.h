/* SPDX-License-Identifier: Apache-2.0 */
/* Where DKMS keeps its things, below the root. */
#pragma once

#define DKMS_FOLDER "var/lib/dkms"
/* What it signs modules with, where its settings name nothing else. */
#define DKMS_CERTIFICATE DKMS_FOLDER "/mok.pub"
#define DKMS_KEY         DKMS_FOLDER "/mok.key"
