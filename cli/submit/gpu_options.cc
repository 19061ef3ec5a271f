#include "cli/submit/gpu_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/option.h"
#include "common/resources/resources.h"
#include "common/text/text.h"

namespace gantry::cli {
namespace {

tl::unexpected<Error> invalid(std::string text) {
  return fail(ErrorCode::invalid_argument, std::move(text));
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// A MIG profile: "1g.10gb", "3g.40gb", "1g.10gb+me".
bool is_profile(std::string_view text) {
  const auto digits = text.find_first_not_of("0123456789");
  return digits != 0 && digits != std::string_view::npos && text.substr(digits).starts_with("g.");
}

Result<void> take_model(std::string_view text, GpuWish& wish) {
  if (is_profile(text)) {
    if (!wish.slice.empty() && wish.slice != text)
      return invalid(
          fmt::format("slices of {} and of {} asked; a job gets one kind", wish.slice, text));
    wish.slice = text;
    return {};
  }
  const std::string model = lower(text);  // one model or several: "h100|a100"
  const auto odd = model.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.|");
  const std::vector<std::string> each = split(model, '|');
  if (odd != std::string::npos ||
      std::any_of(each.begin(), each.end(), [](const std::string& m) { return m.empty(); }))
    return invalid(
        fmt::format("\"{}\" is not a model of GPU; it has letters, digits, - _ and ., and | "
                    "between several",
                    text));
  if (!wish.model.empty() && wish.model != model)
    return invalid(
        fmt::format("GPUs of {} and of {} asked; a job gets one model. --gpu-model "
                    "takes several to choose from",
                    wish.model, model));
  wish.model = model;
  return {};
}

constexpr std::uint32_t kOne = 1000;  // thousandths in one GPU

// Reads an amount: "2", or "0.5" with up to three decimals.
Result<std::uint32_t> parse_amount(std::string_view text) {
  const auto dot = text.find('.');
  ASSIGN(whole, parse_integer("the number of GPUs", text.substr(0, dot), 0, 65536));
  std::uint32_t parts = 0;
  if (dot != std::string_view::npos) {
    std::string decimals(text.substr(dot + 1));
    if (decimals.empty() || decimals.size() > 3)
      return invalid(
          fmt::format("\"{}\": a part of a GPU has one to three decimals, as 0.5", text));
    decimals.resize(3, '0');
    ASSIGN(n, parse_integer("the number of GPUs", decimals, 0, 999));
    parts = static_cast<std::uint32_t>(*n);
  }
  return static_cast<std::uint32_t>(*whole) * kOne + parts;
}

Result<void> take_shards(std::string_view item, GpuWish& wish) {
  const auto colon = item.find(':');
  ASSIGN(n, parse_integer("the number of shards",
                          colon == std::string_view::npos ? "1" : item.substr(colon + 1), 1, 1000));
  wish.shards += static_cast<std::uint32_t>(*n);
  return {};
}

// Reads another resource: "fpga" or "fpga:2". The controller knows whether there is such a
// resource.
Result<void> take_other(std::string_view item, GpuWish& wish) {
  const auto colon = item.find(':');
  const std::string name(item.substr(0, colon));
  if (name.empty())
    return invalid(fmt::format("\"{}\" names no resource; write gpu:2 or NAME:2", item));
  ASSIGN(n, parse_integer("the number of " + name,
                          colon == std::string_view::npos ? "1" : item.substr(colon + 1), 0,
                          kMostGresCount));
  if (*n == 0) return {};  // none requested, whether or not there is such a resource
  for (const GresCount& g : wish.others)
    if (g.name == name) return invalid(fmt::format("{} is asked twice", name));
  wish.others.push_back({name, static_cast<std::uint32_t>(*n)});
  return {};
}

}  // namespace

Result<std::uint32_t> parse_gpus(std::string_view text, GpuWish& wish) {
  if (text.find(',') != std::string_view::npos)
    return invalid(fmt::format("\"{}\": one kind of GPU; a job gets one model", text));
  if (const auto colon = text.rfind(':'); colon != std::string_view::npos) {
    TRY(take_model(text.substr(0, colon), wish));
    text.remove_prefix(colon + 1);
  }
  return parse_amount(text);
}

Result<void> parse_gres(std::string_view text, GpuWish& wish) {
  if (text == "none") {
    wish.per_node = 0;
    return {};
  }
  std::uint32_t sum = 0;
  bool counted = false;
  for (const std::string& item : split_list(text)) {
    std::string_view rest = item;
    if (rest.starts_with("gres/")) rest.remove_prefix(5);
    const std::string_view name = rest.substr(0, rest.find(':'));
    if (name == "shard") {
      TRY(take_shards(rest, wish));
      continue;
    }
    if (name != "gpu" && name != "mig") {
      TRY(take_other(rest, wish));
      continue;
    }
    counted = true;
    if (name == "mig" && !is_profile(rest.substr(std::min<std::size_t>(4, rest.size()))))
      return invalid(fmt::format("\"{}\" names no MIG profile; write mig:1g.10gb:2", item));
    if (rest == "gpu") {
      sum += kOne;
      continue;
    }
    rest.remove_prefix(4);
    const bool only_model = rest.find(':') == std::string_view::npos &&
                            rest.find_first_not_of("0123456789.") != std::string_view::npos;
    if (only_model) {
      TRY(take_model(rest, wish));
      sum += kOne;
      continue;
    }
    ASSIGN(n, parse_gpus(rest, wish));
    sum += *n;
  }
  if (counted) wish.per_node = sum;
  return {};
}

namespace {

// Asks for a part of one GPU, or of one slice, on each node.
Result<void> apply_part(const GpuWish& wish, std::uint32_t each, JobShape& shape) {
  if (each > kOne)
    return invalid(fmt::format("{} {} on a node: a job gets whole ones, or a part of one",
                               format_thousandths(each), wish.slice.empty() ? "GPUs" : "slices"));
  shape.gpu_share = each;
  return {};
}

// The controller divides GPUs that cannot be divided evenly, or whose number of nodes is open: then
// this returns true. A controller of an older release treats an open number as one node.
Result<bool> deal_gpus(const GpuWish& wish, bool nodes_open, JobShape& shape) {
  const std::uint32_t gpus = *wish.in_all / kOne, nodes = shape.min_nodes;
  const bool whole = *wish.in_all % kOne == 0;
  const bool open = nodes_open && gpus > 1;
  const bool may = whole && wish.slice.empty() && wish.shards == 0 && !wish.per_node &&
                   !wish.per_task && gpus >= nodes;
  if (may && (open || gpus % nodes != 0)) {
    shape.memory_per_gpu = wish.memory_each.value_or(0);
    shape.gpus_in_all = gpus;
    shape.gpus_per_node = (gpus + nodes - 1) / nodes;
    return true;
  }
  if (*wish.in_all % ((whole ? kOne : 1) * nodes) == 0) return false;
  return invalid(fmt::format("{} GPUs cannot be dealt to {} nodes; use --gpus-per-node",
                             format_thousandths(*wish.in_all), nodes));
}

// GPUs per task if the tasks cannot be divided evenly among the nodes, or may use several numbers
// of nodes: each node gets as many as its tasks need. Returns false if the GPUs of a node are
// known.
Result<bool> by_task(const GpuWish& wish, JobShape& shape) {
  const std::uint32_t each = *wish.per_task / kOne;
  if (shape.max_nodes == shape.min_nodes && shape.tasks % shape.min_nodes == 0) return false;
  const bool whole = *wish.per_task % kOne == 0 && wish.slice.empty() && wish.shards == 0;
  if (!whole || wish.per_node || wish.in_all)
    return invalid(
        "--gpus-per-task of other than whole GPUs, or beside another number of GPUs, needs as many "
        "tasks on each node; give --nodes and --ntasks-per-node");
  if (each == 0) return false;
  const std::uint32_t nodes = shape.max_nodes;
  shape.gpus_per_task = each;
  shape.gpus_in_all = each * std::max(shape.tasks, shape.min_nodes);
  shape.gpus_per_node = (shape.gpus_in_all / each + nodes - 1) / nodes * each;
  shape.memory_per_gpu = wish.memory_each.value_or(0);
  return true;
}

}  // namespace

Result<void> apply_gpus(const GpuWish& wish, bool nodes_open, JobShape& shape) {
  std::optional<std::uint32_t> each = wish.per_node;
  const auto also = [&](std::uint32_t n, std::string_view option) -> Result<void> {
    if (each && *each != n)
      return invalid(fmt::format("{} makes {} GPUs on each node, and another option says {}",
                                 option, format_thousandths(n), format_thousandths(*each)));
    each = n;
    return {};
  };
  if (wish.in_all) {
    if (shape.max_nodes != shape.min_nodes)
      return invalid("--gpus with a range of nodes says nothing of one node; use --gpus-per-node");
    ASSIGN(dealt, deal_gpus(wish, nodes_open, shape));
    if (!*dealt) TRY(also(*wish.in_all / shape.min_nodes, "--gpus"));
  }
  if (wish.per_task) {
    ASSIGN(uneven, by_task(wish, shape));
    if (!*uneven) TRY(also(*wish.per_task * (shape.tasks / shape.min_nodes), "--gpus-per-task"));
  }
  if (wish.shards > 0) {
    if (each || !wish.slice.empty())
      return invalid("shards are parts of one GPU; a job has them, or whole GPUs or slices");
    shape.gpu_shards = wish.shards;
  }
  if (each && *each % kOne != 0) {
    TRY(apply_part(wish, *each, shape));
  } else if (each) {
    shape.gpus_per_node = *each / kOne;
  }
  shape.gpu_slice = wish.slice;
  shape.gres = wish.others;
  std::sort(shape.gres.begin(), shape.gres.end());
  if (!wish.model.empty()) {
    const auto& models = shape.gpu_models;
    std::vector<std::string> wanted = split(wish.model, '|');
    for (const std::string& model : wanted)
      if (!models.empty() && std::find(models.begin(), models.end(), model) == models.end())
        return invalid(fmt::format("GPUs of {} asked, which --gpu-model does not name", model));
    shape.gpu_models = std::move(wanted);
  }
  if (!wish.memory_each) return {};
  if (shape.gpu_share > 0 || shape.gpu_shards > 0)
    return fail(ErrorCode::usage, "--mem-per-gpu is for whole GPUs; use --mem with a part of one");
  if (shape.gpus_per_node == 0)
    return fail(ErrorCode::usage, "--mem-per-gpu needs GPUs: --gpus-per-node or --gres=gpu:N");
  if (shape.memory_per_node || shape.memory_per_cpu)
    return fail(ErrorCode::usage, "--mem-per-gpu excludes --mem and --mem-per-cpu");
  shape.memory_per_node = *wish.memory_each * shape.gpus_per_node;
  return {};
}

}  // namespace gantry::cli
