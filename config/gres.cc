#include "config/gres.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "common/assert.h"
#include "common/text/hostlist.h"

namespace gantry {
namespace {

constexpr std::array<std::string_view, 5> kTaken{"gpu", "mig", "shard", "mps", "none"};

bool is_name(std::string_view text) {
  const auto small = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && text.size() <= 32 && small(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return small(c) || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

Result<std::vector<std::string>> files_of(std::string_view text) {
  const auto slash = text.rfind('/');
  if (!text.starts_with("/dev/") || text.find("/../") != std::string_view::npos)
    return fail(ErrorCode::invalid_argument, fmt::format("\"{}\" is no path in /dev", text));
  ASSIGN(names, expand_hostlist(text.substr(slash + 1)));
  for (std::string& name : *names) name.insert(0, text.substr(0, slash + 1));
  return std::move(*names);
}

}  // namespace

Result<DeclaredGres> parse_declared_gres(std::string_view text) {
  const auto colon = text.find(':');
  DeclaredGres out;
  out.name = text.substr(0, colon);
  if (!is_name(out.name) || std::find(kTaken.begin(), kTaken.end(), out.name) != kTaken.end())
    return fail(ErrorCode::invalid_argument,
                fmt::format("\"{}\" is not the name of a resource: lower-case letters, digits, - "
                            "and _, a letter first, and not gpu, mig, shard, mps or none",
                            out.name));
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  if (rest.starts_with('/')) {
    ASSIGN(files, files_of(rest));
    out.files = std::move(*files);
    out.count = static_cast<std::uint32_t>(out.files.size());
  } else {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out.count);
    if (error != std::errc{} || end != rest.data() + rest.size()) out.count = 0;
  }
  if (out.count < 1 || out.count > kMostGresCount)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format(
            "\"{}\": a resource is NAME:COUNT with 1 to {}, or NAME:FILES as fpga:/dev/xfpga[0-3]",
            text, kMostGresCount));
  return out;
}

std::vector<DeclaredGres> declared_gres(const NodeConfig& node) {
  std::vector<DeclaredGres> out;
  for (const std::string& text : node.gres) {
    auto one = parse_declared_gres(text);
    GANTRY_ASSERT(one.has_value(), "a resource that was checked when it was read");
    out.push_back(std::move(*one));
  }
  std::sort(out.begin(), out.end(),
            [](const DeclaredGres& a, const DeclaredGres& b) { return a.name < b.name; });
  return out;
}

Result<GresCount> parse_declared_license(std::string_view text) {
  const auto colon = text.find(':');
  GresCount out;
  out.name = text.substr(0, colon);
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out.count);
  if (error != std::errc{} || end != rest.data() + rest.size()) out.count = 0;
  if (out.name.empty() || out.name.size() > 64 ||
      !std::all_of(out.name.begin(), out.name.end(), fits) || out.count < 1 ||
      out.count > kMostLicenses)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format(
            "\"{}\": a licence is NAME:COUNT with 1 to {}, the name of letters, digits, -, _ and .",
            text, kMostLicenses));
  return out;
}

std::vector<GresCount> declared_licenses(const Config& config) {
  std::vector<GresCount> out;
  for (const std::string& text : config.licenses) {
    auto one = parse_declared_license(text);
    GANTRY_ASSERT(one.has_value(), "a licence that was checked when it was read");
    out.push_back(std::move(*one));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> gres_names(const Config& config) {
  std::set<std::string> names;
  for (const NodeConfig& node : config.nodes)
    for (const DeclaredGres& g : declared_gres(node)) names.insert(g.name);
  return {names.begin(), names.end()};
}

}  // namespace gantry
