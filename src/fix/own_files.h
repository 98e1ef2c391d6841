/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are onehop's alone, relative to the root. */
#pragma once

#define FILE_GRUB        "etc/default/grub.d/99-onehop.cfg"
#define FILE_MODPROBE    "etc/modprobe.d/onehop.conf"
#define FILE_LIMITS      "etc/security/limits.d/onehop.conf"
#define FILE_MANAGER     "etc/systemd/system.conf.d/onehop.conf"
#define FOLDER_UNITS     "etc/systemd/system/"
#define UNIT_ACS         "onehop-acs.service"
#define UNIT_PEERMEM     "onehop-peermem.service"
#define UNIT_PERSISTENCE "onehop-persistence.service"
#define UNIT_TRIAL       "onehop-trial.service"
