// What the CUDA twins of the kernels do in a build without CUDA: they say so.
#include <halfscope/kernel/round.hpp>

namespace halfscope {

void round_cuda(const float*, float*, std::size_t, const Quantizer&, RandomStream, CUstream_st*) {
  throw RequestError("round_cuda: this halfscope was built without CUDA; configure with -DHALFSCOPE_CUDA=ON");
}

}  // namespace halfscope
