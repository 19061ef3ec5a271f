#include "noded/site_links.h"

#include <algorithm>
#include <optional>

namespace gantry::node {

// Only used by the thread.
struct SiteLinks::Work {
  Work(network::Cni::Options o, const Logger& l) : options(std::move(o)), log(l) {}

  // The list is read when it is first needed, and again after an error.
  Result<network::Cni*> plugins() {
    if (cni) return &*cni;
    ASSIGN(opened, network::Cni::open(options));
    cni.emplace(std::move(*opened));
    return &*cni;
  }

  void say(const char* what, const proto::AttemptKey& key, const Error& why) const {
    log.error(what, {{"job", key.job}, {"attempt", key.attempt}, {"why", why.message}});
  }

  network::Cni::Options options;
  const Logger& log;
  std::optional<network::Cni> cni;
};

SiteLinks::SiteLinks(network::Cni::Options options, loop::Loop& loop, const Logger& log)
    : work_(std::make_shared<Work>(std::move(options), log)),
      outlet_(std::make_shared<gpu::Outlet>(loop)) {}

SiteLinks::~SiteLinks() {
  outlet_->shut();
}

void SiteLinks::adopt(std::vector<Place> running) {
  thread_.post([work = work_, running = std::move(running)] {
    const auto plugins = work->plugins();
    if (!plugins) {
      work->log.error("the site's links of jobs are not looked after",
                      {{"why", plugins.error().message}});
      return;
    }
    for (const proto::AttemptKey& key : (*plugins)->attempts()) {
      const auto lives =
          std::ranges::find_if(running, [&](const Place& one) { return one.first == key; });
      const auto done = lives == running.end() ? (*plugins)->remove(key, "")
                                               : (*plugins)->check(key, lives->second);
      if (!done)
        work->say(lives == running.end() ? "a job's links of the site are left"
                                         : "a job's links of the site are not as they were made",
                  key, done.error());
    }
  });
}

void SiteLinks::add(const Place& place, Done done) {
  thread_.post([work = work_, outlet = outlet_, place, done = std::move(done)] {
    const auto plugins = work->plugins();
    auto result = std::make_shared<Result<void>>();
    if (plugins)
      *result = (*plugins)->add(place.first, place.second);
    else
      *result = tl::unexpected(plugins.error());
    outlet->post([done, result] { done(std::move(*result)); });
  });
}

void SiteLinks::remove(const Place& place, std::function<void()> done) {
  thread_.post([work = work_, outlet = outlet_, place, done = std::move(done)] {
    if (const auto plugins = work->plugins(); plugins)
      if (const auto removed = (*plugins)->remove(place.first, place.second); !removed)
        work->say("a job's links of the site are left", place.first, removed.error());
    outlet->post(done);
  });
}

void SiteLinks::look(const Place& place, std::function<void(Look&&)> done) {
  thread_.post([work = work_, outlet = outlet_, place, done = std::move(done)] {
    auto look = std::make_shared<Look>();
    const auto plugins = work->plugins();
    if (plugins) {
      look->addresses = (*plugins)->addresses(place.first);
      if (const auto checked = (*plugins)->check(place.first, place.second); !checked)
        look->wrong = checked.error().message;
    } else {
      look->wrong = plugins.error().message;
    }
    outlet->post([done, look] { done(std::move(*look)); });
  });
}

}  // namespace gantry::node
