/* Included first into the faulty daemon, so that it calls the C library by the usual names whatever
 * the flags ask for. */
#undef _FORTIFY_SOURCE
