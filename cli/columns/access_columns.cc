#include "cli/columns/access_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "common/text/text.h"

namespace gantry::cli {
namespace {

using OfAccess = const proto::AccessRow&;
constexpr Column<proto::AccessRow> kAccessColumns[] = {
    {'t', "Tenant", "TENANT",
     [](Out o, OfAccess r) { o += r.tenant.empty() ? "(cluster)" : r.tenant; }},
    {'u', "Who", "WHO", [](Out o, OfAccess r) { o += subject_of(r); }},
    {'r', "Role", "ROLE", [](Out o, OfAccess r) { o += r.role; }},
    {'x', "Rights", "RIGHTS",
     [](Out o, OfAccess r) { o += fmt::format("{}", fmt::join(r.rights, ",")); }},
    {'g', "GPUs", "GPUS",
     [](Out o, OfAccess r) {
       o += !r.gpus                ? "none"
            : r.gpu_models.empty() ? "all"
                                   : fmt::format("{}", fmt::join(r.gpu_models, ","));
     }},
    {'e', "Until", "UNTIL", [](Out o, OfAccess r) { o += r.until ? format_time(*r.until) : "-"; }},
    {'s', "Since", "SINCE", [](Out o, OfAccess r) { o += r.since ? format_time(*r.since) : "-"; }},
    {'b', "By", "BY", [](Out o, OfAccess r) { o += r.by.empty() ? "-" : r.by; }},
    {'f', "From", "FROM", [](Out o, OfAccess r) { o += r.from; }},
    {'R', "Revision", "REVISION",
     [](Out o, OfAccess r) { o += r.revision ? std::to_string(*r.revision) : "-"; }}};

}  // namespace

std::span<const Column<proto::AccessRow>> access_columns() {
  return kAccessColumns;
}

std::string subject_of(const proto::AccessRow& row) {
  return row.user.empty() ? "group " + row.group : row.user;
}

}  // namespace gantry::cli
