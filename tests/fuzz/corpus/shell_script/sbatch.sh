#!/bin/bash
#SBATCH --nodes=2
#SBATCH --export=ALL,NCCL_DEBUG=INFO,NCCL_IB_TIMEOUT=23
export NCCL_NET_GDR_LEVEL=5 # PIX
export NCCL_IB_HCA="mlx5_0,mlx5_1" NCCL_IB_GID_INDEX='3'
NCCL_SOCKET_IFNAME=$(ip route | awk '/default/ {print $5}')
export NCCL_SOCKET_IFNAME
: "${NCCL_P2P_LEVEL:=SYS}"
cat <<'END' >hostfile
NCCL_IGNORED=1 don't
END
unset NCCL_P2P_DISABLE
mpirun -np 8 -x NCCL_P2P_DISABLE=1 -x UCX_TLS=rc,cuda_copy \
	-x LD_LIBRARY_PATH docker run -e NCCL_DEBUG=WARN --env=NCCL_ALGO=Ring ./a.out
