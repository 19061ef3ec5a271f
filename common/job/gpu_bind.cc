#include "common/job/gpu_bind.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/text/text.h"

namespace gantry {
namespace {

constexpr std::int64_t kMostGpus = 64;  // GPUs of a node; each has one bit
constexpr std::size_t kMostSets = 65'536;

tl::unexpected<Error> wrong(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("\"{}\": {}", text, why));
}

tl::unexpected<Error> odd_letter(std::string_view text, char c) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("Failed to validate {}, offending character is {}", text, c));
}

Result<std::uint64_t> parse_mask(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  std::uint64_t mask = 0;
  for (const char c : digits) {
    const auto at = std::string_view("0123456789abcdefABCDEF").find(c);
    if (at == std::string_view::npos) return odd_letter(text, c);
    mask = mask << 4 | (at < 16 ? at : at - 6);
  }
  if (digits.empty() || digits.size() > 16 || mask == 0)
    return wrong(text, "not a mask of GPUs as 0x3");
  return mask;
}

// Parses "0,1*2" or "0x3,0xc": one set for each task, where *N repeats a set.
Result<GpuBind> parse_sets(std::string_view list, bool masks) {
  GpuBind out{GpuBind::Kind::map, 1, {}};
  while (true) {
    const auto comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const auto star = item.find('*');
    std::int64_t times = 1;
    if (star != std::string_view::npos) {
      ASSIGN(n, parse_integer("the number after *", item.substr(star + 1), 1, 65'536));
      times = *n;
    }
    std::uint64_t set = 0;
    if (masks) {
      ASSIGN(mask, parse_mask(item.substr(0, star)));
      set = *mask;
    } else {
      for (const char c : item.substr(0, star))
        if (c < '0' || c > '9') return odd_letter(item.substr(0, star), c);
      ASSIGN(n, parse_integer("the number of a GPU", item.substr(0, star), 0, kMostGpus - 1));
      set = std::uint64_t{1} << *n;
    }
    if (out.sets.size() + static_cast<std::size_t>(times) > kMostSets)
      return wrong(item, "more tasks than a step has");
    out.sets.insert(out.sets.end(), static_cast<std::size_t>(times), set);
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<GpuBind> parse_gpu_bind(std::string_view text) {
  constexpr std::string_view kVerbose = "verbose,";
  if (text.starts_with(kVerbose)) {
    auto bind = parse_gpu_bind(text.substr(kVerbose.size()));
    if (bind) bind->verbose = true;
    return bind;
  }
  if (text == "none") return GpuBind{};
  const auto colon = text.find(':');
  const std::string_view word = text.substr(0, colon);
  const std::string_view rest =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  const bool per_task = word == "per_task";
  if (per_task || word == "single") {
    const auto n =
        parse_integer(per_task ? "the number of GPUs of a task" : "the number of tasks on a GPU",
                      rest, 1, per_task ? kMostGpus : 65'536);
    if (!n) return tl::unexpected(n.error());
    return GpuBind{per_task ? GpuBind::Kind::per_task : GpuBind::Kind::single,
                   static_cast<std::uint32_t>(*n),
                   {}};
  }
  if (word == "map_gpu") return parse_sets(rest, false);
  if (word == "mask_gpu") return parse_sets(rest, true);
  if (text == "closest") return GpuBind{GpuBind::Kind::closest, 1, {}};
  return wrong(text,
               "there are none, closest, per_task:N, single:N, map_gpu:LIST and mask_gpu:LIST");
}

Result<void> check_gpu_bind(const GpuBind& bind) {
  const auto wrong = [](std::string_view why) {
    return fail(ErrorCode::invalid_argument, fmt::format("the binding of tasks to GPUs {}", why));
  };
  const std::int64_t most = bind.kind == GpuBind::Kind::per_task ? kMostGpus : 65'536;
  if (bind.count < 1 || bind.count > most)
    return wrong(fmt::format("has a number of 1 to {}, not {}", most, bind.count));
  if ((bind.kind == GpuBind::Kind::map) != !bind.sets.empty())
    return wrong("has sets of GPUs if it is a map, and only then");
  if (bind.sets.size() > kMostSets)
    return wrong(fmt::format("has {} sets; at most {} are allowed", bind.sets.size(), kMostSets));
  if (std::find(bind.sets.begin(), bind.sets.end(), 0u) != bind.sets.end())
    return wrong("has a set without a GPU");
  return {};
}

Result<std::vector<std::size_t>> gpus_of_task(const GpuBind& bind, std::size_t task,
                                              std::size_t gpus,
                                              std::span<const std::uint32_t> distances) {
  std::vector<std::size_t> out;
  if (gpus == 0) return out;
  switch (bind.kind) {
    case GpuBind::Kind::none:
      for (std::size_t g = 0; g < gpus; ++g) out.push_back(g);
      break;
    case GpuBind::Kind::per_task:
      if (bind.count > gpus)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("a task is to have {} GPUs, and the job has {} on the node",
                                bind.count, gpus));
      for (std::size_t i = 0; i < bind.count; ++i) out.push_back((task * bind.count + i) % gpus);
      break;
    case GpuBind::Kind::closest: {
      const bool known = distances.size() == gpus;
      const std::uint32_t least = known ? *std::min_element(distances.begin(), distances.end()) : 0;
      for (std::size_t g = 0; g < gpus; ++g)
        if (!known || distances[g] == least) out.push_back(g);
      break;
    }
    case GpuBind::Kind::single: out.push_back(task / bind.count % gpus); break;
    case GpuBind::Kind::map: {
      const std::uint64_t set = bind.sets[task % bind.sets.size()];
      for (std::size_t g = 0; g < 64; ++g) {
        if ((set >> g & 1) == 0) continue;
        if (g >= gpus)
          return fail(
              ErrorCode::invalid_argument,
              fmt::format("a task is bound to GPU {}, and the job has {} on the node", g, gpus));
        out.push_back(g);
      }
      break;
    }
  }
  return out;
}

}  // namespace gantry
