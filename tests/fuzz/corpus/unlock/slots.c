/* made up */
void init(T *pThis)
{
#if A
    if (b) {
#else
    if (c) {
#endif
        pThis->__kbusGetBar1P2PDmaInfo__ = &kbusGetBar1P2PDmaInfo_0a1b2c;
    }
    else // "
        pThis->__kbusGetBar1P2PDmaInfo__ = &kbusGetBar1P2PDmaInfo_GH100;
}
