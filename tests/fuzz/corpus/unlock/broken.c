#if A
{ "not ended
#else
}}}
/* not ended