#include "cli/gpu_options.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/option.h"
#include "common/text.h"

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

// "1g.10gb", "3g.40gb", "1g.10gb+me".
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
  const std::string model = lower(text);
  const auto odd = model.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.");
  if (model.empty() || odd != std::string::npos)
    return invalid(
        fmt::format("\"{}\" is not a model of GPU; it has letters, digits, - _ and .", text));
  if (!wish.model.empty() && wish.model != model)
    return invalid(
        fmt::format("GPUs of {} and of {} asked; a job gets one model. --gpu-model "
                    "takes several to choose from",
                    wish.model, model));
  wish.model = model;
  return {};
}

}  // namespace

Result<std::uint32_t> parse_gpus(std::string_view text, GpuWish& wish) {
  if (text.find(',') != std::string_view::npos)
    return invalid(fmt::format("\"{}\": one kind of GPU; a job gets one model", text));
  if (const auto colon = text.rfind(':'); colon != std::string_view::npos) {
    if (auto r = take_model(text.substr(0, colon), wish); !r) return tl::unexpected(r.error());
    text.remove_prefix(colon + 1);
  }
  const auto n = parse_integer("the number of GPUs", text, 0, 65536);
  if (!n) return tl::unexpected(n.error());
  return static_cast<std::uint32_t>(*n);
}

Result<void> parse_gres(std::string_view text, GpuWish& wish) {
  if (text == "none") {
    wish.per_node = 0;
    return {};
  }
  std::uint32_t sum = 0;
  for (const std::string& item : split_list(text)) {
    std::string_view rest = item;
    if (rest.starts_with("gres/")) rest.remove_prefix(5);
    const std::string_view name = rest.substr(0, rest.find(':'));
    if (name != "gpu" && name != "mig")
      return invalid(
          fmt::format("\"{}\" is not a resource of this cluster's nodes; there are gpu and mig, "
                      "as gpu:2, gpu:a100:2 or mig:1g.10gb:2",
                      name));
    if (name == "mig" && !is_profile(rest.substr(std::min<std::size_t>(4, rest.size()))))
      return invalid(fmt::format("\"{}\" names no MIG profile; write mig:1g.10gb:2", item));
    if (rest == "gpu") {
      sum += 1;
      continue;
    }
    rest.remove_prefix(4);
    const bool only_model = rest.find(':') == std::string_view::npos &&
                            rest.find_first_not_of("0123456789") != std::string_view::npos;
    if (only_model) {
      if (auto r = take_model(rest, wish); !r) return r;
      sum += 1;
      continue;
    }
    const auto n = parse_gpus(rest, wish);
    if (!n) return tl::unexpected(n.error());
    sum += *n;
  }
  wish.per_node = sum;
  return {};
}

Result<void> apply_gpus(const GpuWish& wish, JobShape& shape) {
  std::optional<std::uint32_t> each = wish.per_node;
  const auto also = [&](std::uint32_t n, std::string_view option) -> Result<void> {
    if (each && *each != n)
      return invalid(fmt::format("{} makes {} GPUs on each node, and another option says {}",
                                 option, n, *each));
    each = n;
    return {};
  };
  if (wish.in_all) {
    if (shape.max_nodes != shape.min_nodes)
      return invalid("--gpus with a range of nodes says nothing of one node; use --gpus-per-node");
    if (*wish.in_all % shape.min_nodes != 0)
      return invalid(fmt::format("{} GPUs cannot be dealt evenly to {} nodes; use --gpus-per-node",
                                 *wish.in_all, shape.min_nodes));
    if (auto r = also(*wish.in_all / shape.min_nodes, "--gpus"); !r) return r;
  }
  if (wish.per_task) {
    if (shape.max_nodes != shape.min_nodes || shape.tasks % shape.min_nodes != 0)
      return invalid(
          "--gpus-per-task needs as many tasks on each node; give --nodes and "
          "--ntasks-per-node");
    if (auto r = also(*wish.per_task * (shape.tasks / shape.min_nodes), "--gpus-per-task"); !r)
      return r;
  }
  if (each) shape.gpus_per_node = *each;
  shape.gpu_slice = wish.slice;
  if (!wish.model.empty()) {
    const auto& models = shape.gpu_models;
    if (!models.empty() && std::find(models.begin(), models.end(), wish.model) == models.end())
      return invalid(fmt::format("GPUs of {} asked, which --gpu-model does not name", wish.model));
    shape.gpu_models = {wish.model};
  }
  if (!wish.memory_each) return {};
  if (shape.gpus_per_node == 0)
    return fail(ErrorCode::usage, "--mem-per-gpu needs GPUs: --gpus-per-node or --gres=gpu:N");
  if (shape.memory_per_node || shape.memory_per_cpu)
    return fail(ErrorCode::usage, "--mem-per-gpu excludes --mem and --mem-per-cpu");
  shape.memory_per_node = *wish.memory_each * shape.gpus_per_node;
  return {};
}

}  // namespace gantry::cli
