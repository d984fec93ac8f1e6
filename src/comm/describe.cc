// SPDX-License-Identifier: Apache-2.0
// hocketCommDescribe: the communicator as JSON.
#include <nlohmann/json.hpp>

#include "comm/communicator.h"
#include "plan/print.h"

namespace hocket {

std::string Communicator::describe() {
  nlohmann::json json;
  json["version"] = HOCKET_VERSION_CODE;
  json["name"] = settings_.name;
  json["rank"] = rank_;
  json["n_ranks"] = n_ranks_;
  json["ranks"] = nlohmann::json::array();
  for (const RankInfo& info : ranks_) json["ranks"].push_back({{"rank", info.rank}, {"pid", info.pid}, {"host", info.host}});
  json["cpus"] = n_cpus_;
  json["crowded"] = wait_policy_.crowded;
  if (transport_ != nullptr) {
    json["transports"] = {{{"name", transport_->name()},
                           {"peers", n_ranks_ - 1},
                           {"reason", "all ranks share the memory of one host"},
                           {"shared_bytes", layout_.total_bytes()},
                           {"slots", layout_.depth()},
                           {"slot_bytes", layout_.slot_bytes()},
                           {"multicast_slot_bytes", layout_.multicast_slot_bytes()},
                           {"ll_bytes", layout_.ll_bytes()}}};
  }
  nlohmann::json settings;
#define HOCKET_DESCRIBE(field, type, env, default_value, help) settings[#field] = settings_.field;
  HOCKET_FOR_EACH_SETTING(HOCKET_DESCRIBE)
#undef HOCKET_DESCRIBE
  settings["algorithm"] = settings_.algorithm;
  json["settings"] = settings;
  json["plans"] = nlohmann::json::array();
  if (plans_ != nullptr)
    for (const Program* program : plans_->all()) json["plans"].push_back(to_json(program->plan));
  json["counters"] = {{"collective_calls", history_.current()}, {"pending", pending()}};
  const Status status = state();
  json["error"] = status ? nlohmann::json() : nlohmann::json(status.error().text);
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace hocket
