/* Messages of tens of kilobytes. */
#include "simulated_gpu.h"

#include "device_direct.h"
