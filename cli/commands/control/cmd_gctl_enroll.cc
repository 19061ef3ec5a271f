// gctl enroll: accepts a node's key, makes tokens by which a node enrolls itself once, and revokes
// both. A token is made here, and the controller only gets its hash.
#include <fmt/core.h>

#include "cli/commands/control/gctl.h"
#include "cli/session.h"
#include "cli/table.h"
#include "common/auth/enroll_token.h"
#include "common/net/keys.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_enroll {
namespace {

struct EnrollOptions {
  bool token = false, list = false;
  Duration valid = hours(1);
  std::string revoke, revoke_key;
};

Result<void> set_valid(EnrollOptions& o, std::string_view text) {
  ASSIGN(length, parse_duration(text));
  if (!*length) return fail(ErrorCode::invalid_argument, "a token ends at some time");
  o.valid = **length;
  return {};
}

constexpr Option kOptions[] = {
    flag("list", "The tokens that were not used yet, and which nodes have a key",
         put<&EnrollOptions::list>),
    takes("revoke", "TOKEN",
          "Take back a token, by its id in the list, or all tokens of a node, by its name",
          put<&EnrollOptions::revoke>),
    takes("revoke-key", "NODE",
          "Take back the node's key: its daemon is not heard any more, and its jobs are those of a "
          "lost node",
          put<&EnrollOptions::revoke_key>),
    flag("token", "Print a token with which NODE enrolls itself once (gantry-noded --enroll)",
         put<&EnrollOptions::token>),
    takes("valid", "TIME",
          "With --token: how long, as minutes, H:M:S or D-H, up to 30 days (default 1:00:00)",
          call<set_valid>),
};

void print_list(const proto::EnrollmentList& list) {
  for (const proto::EnrollTokenRow& row : list.tokens)
    fmt::print("token {} for {}, until {}, made by {} at {}\n", row.id, row.node,
               format_time(row.expires), row.by, format_time(row.made));
  for (const proto::EnrolledNodeRow& row : list.nodes)
    fmt::print("node {}: {}\n", row.node, row.public_key.empty() ? "no key" : row.public_key);
}

Result<int> change(const Invocation& in, const proto::ChangeEnrollment& request) {
  ASSIGN(list, ask<proto::EnrollmentList>(in.program(), request));
  return 0;
}

Result<int> make_token(const Invocation& in, const std::string& node, Duration valid) {
  const std::string token = auth::make_enroll_token();
  proto::ChangeEnrollment request;
  request.node = node;
  request.hash = auth::hash_of_enroll_token(token);
  request.valid = valid;
  TRY(change(in, request));
  fmt::print("{}\n", token);
  return 0;
}

Result<int> run_enroll(const Invocation& in) {
  EnrollOptions o;
  OPERANDS(operands, in, &o, 0, 2);
  const auto& words = **operands;
  const int actions = (o.token ? 1 : 0) + (o.list ? 1 : 0) + (o.revoke.empty() ? 0 : 1) +
                      (o.revoke_key.empty() ? 0 : 1);
  const std::size_t wanted = o.token ? 1 : actions > 0 ? 0 : 2;
  if (actions > 1 || words.size() != wanted)
    return fail(ErrorCode::usage,
                "it is NODE KEY, or --token NODE, or one of --list, --revoke and --revoke-key "
                "alone");
  if (o.token) return make_token(in, words[0], o.valid);
  if (o.list) {
    ASSIGN(list, ask<proto::EnrollmentList>(in.program(), proto::ListEnrollment{}));
    print_list(*list);
    return 0;
  }
  if (actions > 0) {
    proto::ChangeEnrollment request;
    request.revoke = o.revoke;
    request.revoke_key = o.revoke_key;
    return change(in, request);
  }
  ASSIGN(key, net::parse_public_key(words[1]));
  ASSIGN(ok, ask<proto::Ok>(in.program(), proto::EnrollNode{words[0], net::to_z85(*key)}));
  return 0;
}

}  // namespace

const Command kGctlEnroll{
    {"enroll", "Accept a node by its public key, or by a token that it shows once", "[NODE [KEY]]"},
    {.description =
         "A node has one key. With a token it makes its key at its first start and enrolls it "
         "itself, so that no key has to be carried to the controller. A token is for one node, "
         "counts once and for a time; the controller keeps only its hash, so it is printed once.",
     .options = kOptions,
     .examples = {{"gctl enroll gpu07 \"$(cat gpu07.pub)\"",
                   "The key that `gantry keygen --node` printed on gpu07"},
                  {"gctl enroll --token gpu07 --valid 15",
                   "A token for the first start of gpu07: gantry-noded --enroll FILE"},
                  {"gctl enroll --list", "Tokens that wait, and keys"},
                  {"gctl enroll --revoke-key gpu07", "gpu07 was stolen"}},
     .run = run_enroll}};

}  // namespace gantry::cli::gctl_enroll
