// The least of a profiler: prints the ranges of every NVTX domain. NVTX_INJECTION64_PATH names it.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <string>

namespace {

std::string domain;

nvtxDomainHandle_t create(const char* name) {
  domain = name;
  return reinterpret_cast<nvtxDomainHandle_t>(&domain);
}

int push(nvtxDomainHandle_t in, const nvtxEventAttributes_t* event) {
  const bool known = reinterpret_cast<std::string*>(in) == &domain;
  std::printf("%s: %s, %llu bytes\n", known ? domain.c_str() : "?", event->message.ascii,
              static_cast<unsigned long long>(event->payload.ullValue));
  return 0;
}

int pop(nvtxDomainHandle_t) {
  std::printf("end\n");
  return 0;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) {
    return 0;
  }
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
