#include "ctld/users_program.h"

#include <fmt/core.h>
#include <unistd.h>

#include <iterator>

#include "common/auth/users.h"

namespace gantry::ctld {

// setpriv does it: a process of many threads must not change its ids between fork and exec.
Result<std::vector<std::string>> words_as_user(Uid uid, Privileges privileges,
                                               std::vector<std::string> words) {
  if (::geteuid() == uid.value() && uid.value() != 0) return words;
  const auto user = auth::find_user(uid);
  if (!user) return tl::unexpected(user.error());
  std::vector<std::string> out{"setpriv",
                               fmt::format("--reuid={}", user->uid.value()),
                               fmt::format("--regid={}", user->gid.value()),
                               "--init-groups",
                               "--inh-caps=-all",
                               "--reset-env"};
  if (privileges == Privileges::never) out.emplace_back("--no-new-privs");
  out.emplace_back("--");
  out.insert(out.end(), std::make_move_iterator(words.begin()),
             std::make_move_iterator(words.end()));
  return out;
}

}  // namespace gantry::ctld
