#include "noded/network/filter.h"

#include <fmt/core.h>
#include <nftables/libnftables.h>

#include <cstdlib>

namespace gantry::network {

void Filter::CloseContext::operator()(nft_ctx* context) const {
  ::nft_ctx_free(context);
}

Result<Filter> Filter::open() {
  nft_ctx* context = ::nft_ctx_new(NFT_CTX_DEFAULT);
  if (context == nullptr)
    return fail(ErrorCode::unavailable, "libnftables cannot reach the kernel's packet filter");
  Filter out(context);
  ::nft_ctx_buffer_output(context);
  ::nft_ctx_buffer_error(context);
  return out;
}

Result<void> Filter::run(const std::string& commands) {
  if (commands.empty()) return {};
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), commands.c_str());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  (void)::nft_ctx_get_output_buffer(context_.get());
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter refuses its rules: {}",
                                                    said.substr(0, said.find('\n'))));
  return {};
}

Result<std::uint64_t> Filter::packets_of(const std::string& table, const std::string& set,
                                         const std::string& link) {
  const std::string command = fmt::format("get element {} {} {{ \"{}\" }}", table, set, link);
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  const std::string out = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  constexpr std::string_view kPackets = "counter packets ";
  const auto at = out.find(kPackets, out.find("elements"));
  if (failed != 0 || at == std::string::npos)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return std::strtoull(out.c_str() + at + kPackets.size(), nullptr, 10);
}

Result<std::string> Filter::list(const std::string& table) {
  ::nft_ctx_output_set_flags(context_.get(), NFT_CTX_OUTPUT_JSON);
  const std::string command = "list table " + table;
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  std::string out = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  ::nft_ctx_output_set_flags(context_.get(), 0);
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return out;
}

}  // namespace gantry::network
