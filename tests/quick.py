"""One test of each room, for ``make quick``: ``python tests/quick.py`` prints them.

A room is a package or a module beside the packages. ``tests/test_suite.py`` keeps the list complete.
"""

from __future__ import annotations

#: Room → file below ``tests``, which imports from the room, and test; of its cells all run.
ROOMS = {
    "api": "e2e/test_front_door.py::test_a_vertical_run_has_no_clients",
    "array": "contract/test_images.py::test_the_adversary_s_own_file_has_bytes",
    "attacks": "contract/test_attacks.py::test_estimate_refuses_arrays_that_do_not_fit",
    "attacks.helpers": "unit/attacks/test_property.py::test_norms_tell_what_means_do_not",
    "attacks.helpers.linear": "unit/attacks/test_lmmse_turned.py::"
    "test_a_complement_and_no_turn_at_all_are_told_apart",
    "attacks.helpers.networks": "oracle/test_transfer.py::test_the_decoder_is_the_ridge_of_the_best_penalty",
    "attacks.helpers.people": "unit/attacks/test_property.py::test_populations_lie_as_far_as_asked",
    "attacks.helpers.gradients": "unit/attacks/helpers/gradients/test_gradient_matching.py::"
    "test_distances_are_those_of_their_definitions",
    "cli": "unit/experiments/results/test_verdict.py::"
    "test_the_verdict_names_the_leak_and_what_a_defence_changes",
    "clients": "contract/test_scored_parties.py::test_only_rows_released_so_far_are_scored",
    "clients.horizontal": "contract/test_horizontal.py::test_no_row_leaves_a_client",
    "clients.vertical.clear": "contract/test_restart.py::test_a_row_is_given_once_an_epoch_across_restarts",
    "clients.vertical.protected": "contract/test_protected.py::"
    "test_the_parts_are_those_of_protected_training",
    "clients.vertical": "contract/test_alignment.py::test_two_runs_have_no_digest_in_common",
    "config": "unit/config/test_config.py::test_refusals_name_the_field_and_no_secret",
    "coordinator": "contract/test_leading.py::test_a_run_that_moves_on_is_led_over_any_number_of_deaths",
    "coordinator.horizontal": "contract/test_mean_audit.py::"
    "test_another_model_for_one_client_is_found_by_two_folders",
    "coordinator.vertical": "contract/test_regressions.py::test_training_works_inside_a_running_event_loop",
    "datasets": "unit/datasets/test_datasets.py::test_bundled_sets_load",
    "defenses": "contract/test_defenses.py::test_the_claimed_noise_is_the_noise",
    "errors": "unit/test_errors.py::test_a_class_is_found_by_its_name_and_by_its_code",
    "experiments": "contract/test_inner_hooks.py::test_a_batch_is_changed_before_the_model_sees_it",
    "experiments.audit": "unit/experiments/audit/test_audit.py::"
    "test_the_strongest_attack_stands_beside_its_blind_guess",
    "cli.screen": "unit/cli/test_progress.py::test_a_quiet_party_has_none",
    "experiments.starting": "unit/experiments/starting/test_copies.py::"
    "test_an_example_is_told_by_the_first_sentence_of_its_comment",
    "cli.decide": "unit/cli/decide/test_threshold_options.py::test_junit_without_a_threshold_is_refused",
    "experiments.epsilon": "unit/experiments/epsilon/test_mechanisms.py::"
    "test_canaries_are_opposite_rows_or_there_or_not",
    "experiments.evidence": "unit/experiments/evidence/test_dpia_matrix.py::test_of_nothing_nothing_is_said",
    "experiments.outcome": "unit/experiments/outcome/test_decide.py::test_many_rows_decide_and_few_do_not",
    "experiments.figures": "unit/experiments/figures/test_figures.py::test_a_coarse_page_says_so",
    "experiments.figures.fedadob": "unit/experiments/figures/test_fedadob_figures.py::"
    "test_every_cell_is_an_experiment_of_installed_plug_ins",
    "experiments.imports": "e2e/test_flower.py::"
    "test_updates_are_what_clients_returned_less_what_they_were_sent",
    "experiments.verify_log": "contract/test_mean_audit.py::"
    "test_another_model_for_one_client_is_found_by_two_folders",
    "experiments.offline": "e2e/test_offline.py::test_the_target_scores_it_as_it_did_in_the_run",
    "experiments.offline.vertical": "contract/test_collusion.py::test_a_folder_gives_the_bottom_model_again",
    "experiments.pages": "unit/experiments/pages/test_report.py::test_a_finished_run_shows_every_panel",
    "experiments.release": "e2e/test_release.py::"
    "test_names_order_and_label_are_kept_and_the_noise_has_the_size_it_should",
    "experiments.results": "unit/experiments/results/test_verdict.py::"
    "test_a_defence_that_fails_and_costs_accuracy",
    "experiments.run": "contract/test_determinism.py::test_another_seed_gives_another_run",
    "experiments.run.horizontal": "unit/experiments/run/test_dealt_rows.py::"
    "test_clients_get_their_shares_of_each_class_to_train_and_to_predict",
    "experiments.run.vertical": "unit/experiments/run/test_dealer.py::"
    "test_the_dealer_gives_each_its_own_secrets",
    "experiments.scoreboard": "unit/experiments/scoreboard/test_verdicts.py::"
    "test_a_seed_counts_once_and_the_worse_rows_count",
    "experiments.sweeps": "unit/experiments/sweeps/test_sweep.py::"
    "test_a_refused_strength_is_named_and_the_rest_is_kept",
    "experiments.watch": "unit/experiments/watch/test_watch_page.py::test_a_run_has_its_panels",
    "experiments.weights": "unit/experiments/weights/test_given_weights.py::"
    "test_the_adversary_has_the_equations_of_the_given_model",
    "failpoints": "unit/test_failpoints.py::test_the_count_chooses_the_arrival",
    "member": "contract/test_member.py::test_settle_and_flush_change_no_state",
    "models": "unit/models/test_logistic.py::test_a_block_learns_with_the_gradient_of_the_penalised_loss",
    "models.families": "unit/models/test_blocks.py::test_presets_are_the_cuts_of_the_paper",
    "models.networks": "unit/models/test_networks.py::test_a_restart_in_the_middle_ends_with_the_same_bits",
    "names": "contract/test_imports.py::test_a_file_of_an_attack_imports_what_is_listed",
    "numerics": "unit/models/test_logistic.py::test_optimisers_follow_the_textbook",
    "numerics.boosting": "unit/numerics/boosting/test_path_restriction.py::test_a_choice_is_drawn_evenly",
    "numerics.estimators": "oracle/test_box_estimators.py::test_theorem_1_holds_for_every_row",
    "numerics.gradients": "unit/numerics/test_gradient_closed_forms.py::"
    "test_the_input_of_a_linear_layer_with_bias_is_exact",
    "numerics.measures": "unit/numerics/test_intervals.py::test_errors_are_added_before_they_are_divided",
    "numerics.shares": "unit/numerics/shares/test_step.py::test_the_change_of_theta_keeps_within_the_limit",
    "numerics.theory": "oracle/test_theory.py::test_closed_form_against_monte_carlo",
    "plugins": "contract/test_plugin_border.py::"
    "test_a_view_leads_to_no_log_that_can_be_written_and_to_no_party",
    "plugins.views": "unit/plugins/test_view.py::test_only_declared_phases_are_seen",
    "protocol": "contract/test_link.py::TestLink::test_the_access_table_is_enforced",
    "protocol.horizontal": "unit/protocol/test_secure_sum.py::test_a_missing_client_is_named",
    "protocol.vertical": "unit/protocol/test_federation.py::test_what_was_saved_is_loaded",
    "protos": "wire/test_codec.py::test_the_table_is_the_proto",
    "randomness": "unit/test_randomness.py::test_streams_never_change_silently",
    "recorded": "unit/protocol/test_overflow.py::test_an_update_is_named_with_the_parameters_of_its_round",
    "recorded.horizontal": "unit/protocol/test_overflow.py::"
    "test_an_update_is_named_with_the_parameters_of_its_round",
    "recorded.vertical": "oracle/test_agnostic.py::"
    "test_training_rows_are_attacked_and_scored_as_a_set_of_their_own",
    "registry": "unit/test_registry.py::test_an_installed_package_adds_both_by_entry_points",
    "score": "contract/test_scoring.py::test_figures_agree_with_a_calculation_by_hand",
    "services": "contract/test_status.py::test_a_party_in_training_shows_its_step_and_which_peers_serve",
    "services.certificates": "e2e/test_certs_refusals.py::test_good_files_are_accepted",
    "services.forking": "unit/services/test_forks.py::test_a_code_is_the_child_s",
    "storage": "unit/storage/test_journal.py::test_every_dtype_and_shape_comes_back",
    "table_noise": "oracle/test_release_noise.py::test_bounded_noise_is_the_reference",
    "tables.own_check": "unit/tables/test_flaws.py::test_every_sentence",
    "tables.written": "unit/tables/test_encodings.py::test_codes_are_no_money",
    "tables": "unit/tables/test_partytable.py::test_pixels_that_a_file_has_as_bytes_stay_bytes",
    "testing": "contract/test_contracts.py::test_a_broken_attack_fails",
    "types": "wire/test_codec.py::test_acts_survive",
    "verification": "oracle/test_verification.py::test_the_certificate_stands_beside_the_difference",
    "wire": "wire/test_codec.py::test_replies_survive",
    "wire.agreements": "wire/test_codec.py::test_wrong_parties_are_refused",
    "wire.tls": "wire/test_tls.py::test_peers_that_trust_each_other_meet",
    "words": "unit/test_words.py::test_a_verb_agrees_as_well",
}

if __name__ == "__main__":
    print(*dict.fromkeys(f"tests/{test}" for test in ROOMS.values()))
