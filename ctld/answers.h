// Answers: requests that the controller answers outside of the core: accounting, questions to the
// planner, tokens, pages of the audit log. Their senders are checked with the same rules as those
// of requests for the core.
#pragma once

#include <functional>

#include "common/auth/signature.h"
#include "common/proto/control.h"
#include "common/proto/history.h"
#include "common/proto/job_query.h"
#include "common/proto/session.h"
#include "ctld/acct/history_reader.h"
#include "ctld/connections.h"
#include "ctld/core/request.h"
#include "ctld/planner.h"
#include "ctld/rpc/user_limits.h"

namespace gantry::ctld {

class Notary;

// A request, and who sent it, with the sender's grants.
struct Asked {
  const rpc::Session& session;
  std::uint64_t request = 0;
  core::Identity who;
};

class Answers {
 public:
  // The threads of `planner` and `history` must end before this object is destroyed. `token` signs
  // the tokens that act for users.
  Answers(const Shell& shell, Connections& connections, Planner& planner,
          acct::HistoryReader& history, Notary& notary, const auth::SigningSeed& token)
      : shell_(shell),
        connections_(connections),
        planner_(planner),
        history_(history),
        notary_(notary),
        token_(token) {}

  void what_if(const Asked& asked, const proto::WhatIf& message);
  void plan_modes(const Asked& asked);
  void query_history(const Asked& asked, const proto::QueryHistory& message);
  void make_token(const Asked& asked, const proto::MakeToken& message);
  void read_audit(const Asked& asked, const proto::ReadAudit& message);

 private:
  // Counts a query that another thread answers. Returns the function to call when it is answered.
  Result<std::function<void()>> question(rpc::UserQuestions& questions, const core::Identity& who);
  // Sends the planner's answer to the asker, if the connection still exists.
  template <class Reply>
  std::function<void(Reply)> later(const Asked& asked, std::function<void()> answered);

  const Shell& shell_;
  Connections& connections_;
  Planner& planner_;
  acct::HistoryReader& history_;
  Notary& notary_;
  const auth::SigningSeed& token_;
  rpc::UserQuestions history_questions_{kMostHistoryQuestions};
  rpc::UserQuestions planner_questions_{kMostPlannerQuestions};
};

}  // namespace gantry::ctld
