#include "codec/szp_portable.hpp"
// The unit codec calls the primitives above.
#include "codec/szp_decode.hpp"
#include "codec/szp_encode.hpp"
