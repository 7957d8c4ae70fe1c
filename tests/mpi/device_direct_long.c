/* Messages that are long enough to take turns. */
#include "simulated_gpu.h"

#define FLOATS 1100000
#define MANY 15
#include "device_direct.h"
