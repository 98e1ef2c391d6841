NV_STATUS
kbusCreateP2PMapping_GP100
(
    A *a, // )
    NvU32 attributes
)
{
    char c = '"';

    if (FLD_TEST_DRF(_P2PAPI, _ATTRIBUTES, _CONNECTION_TYPE, _PCIE, attributes)) { return x; }
}
NV_STATUS nvGpuOpsBuildExternalAllocPtes(int a)
{
    NV_STATUS   status = NV_OK;
    vol = nvGpuOpsGetExternalAllocVolatility(a,
            (b)); /* c
    */
    kgmmuEncodePhysAddrs(pKernelGmmu, aperture, physicalAddresses, fabricBaseAddress, pteCount);
done:
    return status;
}
static int nv_resize_pcie_bars(struct pci_dev *pci_dev) { r = pci_resize_resource(pci_dev, NV_GPU_BAR1, requested_size); }
