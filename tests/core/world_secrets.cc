// Commands of scenarios about secrets: what the shell does with its key is only told here, so that
// a scenario shows what is bound to what.
//
//   secret alice fraud/hub CONTENT [keep=2]   unsecret alice fraud/hub[@2]   secrets alice [fraud]
//   renew n1 job=1 attempt=1                  (the node asks for new tokens)
#include <fmt/core.h>

#include "common/proto/attempt.h"
#include "common/proto/secrets.h"
#include "ctld/core/core.h"
#include "ctld/core/tenancy/secrets.h"
#include "tests/core/world.h"

namespace gantry::core::test {
namespace {

std::pair<std::string, std::string> halves(const std::string& text, char at) {
  const std::size_t cut = text.find(at);
  if (cut == std::string::npos) return {text, ""};
  return {text.substr(0, cut), text.substr(cut + 1)};
}

}  // namespace

bool World::secrets_command(const std::string& verb, const Words& w) {
  if (verb == "secret") {
    proto::SetSecret m;
    std::tie(m.tenant, m.name) = halves(w.plain.at(2), '/');
    m.version = next_version(core_->state(), m.tenant, m.name);
    m.sealed = fmt::format("{} for {}/{}@{}", w.plain.at(3), m.tenant, m.name, m.version);
    if (w.find("open")) m.content = "not sealed";
    if (w.find("keep")) m.keep = static_cast<std::uint32_t>(std::stoul(*w.find("keep")));
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "unsecret") {
    proto::RemoveSecret m;
    const auto [tenant, rest] = halves(w.plain.at(2), '/');
    const auto [name, version] = halves(rest, '@');
    m.tenant = tenant;
    m.name = name;
    if (!version.empty()) m.version = static_cast<std::uint32_t>(std::stoul(version));
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "secrets") {
    proto::ListSecrets m;
    if (w.plain.size() > 2) m.tenants = {w.plain.at(2)};
    return ask(w.plain.at(1), std::move(m)), true;
  }
  if (verb == "renew") {
    const proto::AttemptKey key{
        JobId(std::stoul(*w.find("job"))),
        Attempt(static_cast<std::uint32_t>(std::stoul(*w.find("attempt"))))};
    return step(FromNode{w.plain.at(1), proto::RenewIdentity{key}}), true;
  }
  return false;
}

void World::print(const proto::SecretList& m) {
  for (const proto::SecretRow& row : m.rows) {
    std::string text = fmt::format("{}/{}:", row.tenant, row.name);
    for (const proto::SecretVersion& v : row.versions)
      text += fmt::format(" {} by {}{}", v.number, v.by,
                          v.used ? fmt::format(" used by {}", v.used_by.value()) : "");
    if (row.waiting > 0) text += fmt::format("; {} jobs", row.waiting);
    line(text);
  }
  if (m.rows.empty()) line("no secrets");
}

}  // namespace gantry::core::test
