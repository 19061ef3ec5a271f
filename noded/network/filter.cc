#include "noded/network/filter.h"

#include <fmt/core.h>
#include <nftables/libnftables.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace gantry::network {
namespace {

// What libnftables writes is `counter NAME { packets 1 bytes 2 }` with any white space, or
// `"NAME" counter packets 1 bytes 2`.
std::map<std::string, std::uint64_t> counters_in(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBetween = " \t\n,{}=";
  while (!text.empty()) {
    const auto begin = std::min(text.find_first_not_of(kBetween), text.size());
    text.remove_prefix(begin);
    const auto end = std::min(text.find_first_of(kBetween), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  std::map<std::string, std::uint64_t> out;
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] != "packets") continue;
    std::string_view name = words[i - 1] == "counter" ? words[i - 2] : words[i - 1];
    if (name.size() > 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    out[std::string(name)] = std::strtoull(std::string(words[i + 1]).c_str(), nullptr, 10);
  }
  return out;
}

}  // namespace

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

Result<std::map<std::string, std::uint64_t>> Filter::counters(const std::string& command) {
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  const std::string text = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return counters_in(text);
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
